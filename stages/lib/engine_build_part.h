/*
 * engine_build_part.h - one compile of an engine, shared by engine_build.c and engine_cuda.c.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_ENGINE_BUILD_PART_H
#define TS_ENGINE_BUILD_PART_H

#include "engine_build.h"
#include "toolkit.h"

enum { ENGINE_JOB_ARGS = ENGINE_FILES + 40 };

struct engine_job {
	char src[PATH_MAX - 80], out[PATH_MAX - 80], program[PATH_MAX]; /* what is read, and written */
	char tools[1024];              /* "", or a folder the compiler is in, beside the system's */
	char text[ENGINE_JOB_ARGS][PATH_MAX + 64];
	const char *argv[ENGINE_JOB_ARGS];
	int argc;
	uint64_t memory, cpu_s;        /* of each of its processes */
	int crash;                     /* exit code of a compiler that failed itself; -1 none */
};

void engine_job_arg(struct engine_job *j, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Those files that end in `tail`. */
void engine_job_units(struct engine_job *j, const struct engine_file *file, int n, const char *tail);

/* The command line of nvcc. */
void engine_job_cuda(struct engine_job *j, const struct toolkit *t, const char *arch, const struct engine_file *file, int n);
/* Into `key`, which is the sources': all else that decides about the program. `protocol`: path of engine_protocol.h.
 * EX_NOENV: no nvcc in the toolkit. */
int engine_cuda_key(const struct toolkit *t, const char *arch, const char *protocol, char key[HASH_HEX], struct err *e);

#endif
