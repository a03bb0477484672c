/*
 * engine_build.h - engine sources -> program, by the host's C compiler or the toolkit's nvcc, in confinement.
 *
 * The compiler sees the sources, engine_protocol.h, the system's headers and libraries and the toolkit; no repository, network
 * or other process, and writes into one folder of its own. Options are fixed (ENGINE_BUILD_OPTIONS, ENGINE_CUDA_OPTIONS), so
 * that two arms differ by their sources alone. A source that does not compile is a result (ok 0, a reason code, the
 * compiler's words); errors are ours or the machine's.
 *
 * The program lies in BUILD/engines/KEY/engine, BUILD being the folder above this program's and KEY the hash of the sources
 * (CUDA: and of options, GPU architecture and toolkit). One in C is made anew each time and moved into place whole; who runs
 * the one before keeps it. One in CUDA, which takes nvcc most of a minute, is made once: its hash lies beside it, written last.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_ENGINE_BUILD_H
#define TS_ENGINE_BUILD_H

#include "buf.h"
#include "confine.h"
#include "err.h"
#include "hash.h"

#include <limits.h>
#include <stddef.h>

#define ENGINE_BUILD_OPTIONS "-std=gnu11 -O3 -march=native -ffp-contract=fast -lm -lpthread"
#define ENGINE_CUDA_OPTIONS "-O3 -std=c++17 -arch=ARCH -lineinfo -cudart static -lcublas -lcublasLt -lcuda -lpthread"

enum { ENGINE_FILES = 64, ENGINE_FILE_NAME = 64 };

struct engine_file {
	char name[ENGINE_FILE_NAME]; /* engine_files.h has the rule */
	struct buf text;
};

struct engine_built {
	int ok;
	char code[48];           /* "ok", compile.error, compile.timeout, compile.limit, compile.crash */
	char message[256];
	struct buf log;          /* what the compiler said: untrusted */
	char path[PATH_MAX];     /* absolute */
	char sha[HASH_HEX];      /* of the program */
	char isolation[CONFINE_LIST];
};

/* Identity of a candidate of files: SHA-256 over "NAME\0HASH\n" of each, by name. Sorts `file`. */
void engine_files_sha(struct engine_file *file, int n, char out[HASH_HEX]);

/* `arch`: of the GPU that a CUDA engine is for ("sm_90a"); NULL: an engine in C. EX_NOENV: no toolkit, or one without nvcc. */
int engine_build(struct engine_file *file, int n, const char *arch, struct engine_built *b, struct err *e);
/* An engine in C with ASan and UBSan, which end it at the first thing they report, and no search for leaks; less optimised, lines
 * known. Lies beside the other in engines/KEY-sanitize. Not ok also where the machine has no sanitizers. */
int engine_build_sanitized(struct engine_file *file, int n, struct engine_built *b, struct err *e);
void engine_built_free(struct engine_built *b);

#endif
