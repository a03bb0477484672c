/*
 * engine_call.h - talk to an engine (stages/engine/engine_protocol.h): an untrusted child with a model, prompts in,
 * tokens out, and the clock on this side.
 *
 * The child sees its own program, the model's folder and the system's libraries, read-only (and of a GPU what it needs:
 * engine_cage.h); no network, no other process, nothing of the repository, an environment without anything of ours. It is
 * killed when we end, and at every deadline.
 *
 *   engine_open -> engine_ask ... -> engine_close
 *
 * What the child does wrong is an outcome, not an error. After any outcome but ENGINE_OK only engine_close may follow.
 * Single-threaded callers; SIGPIPE is ignored from engine_open on.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_ENGINE_CALL_H
#define TS_ENGINE_CALL_H

#include "buf.h"
#include "confine.h"
#include "engine_memory.h"
#include "err.h"
#include "spawn.h"

#include <stddef.h>
#include <stdint.h>

enum engine_outcome {
	ENGINE_OK,
	ENGINE_DIED,     /* ended before it had answered, or not with exit 0 after it had */
	ENGINE_TIMEOUT,
	ENGINE_EARLY,    /* wrote before it had the whole prompt: the answer cannot depend on it */
	ENGINE_EXTRA,    /* wrote more than was asked for */
	ENGINE_GARBAGE,  /* said something else than ready */
	ENGINE_RANGE,    /* an id outside the vocabulary */
};
const char *engine_outcome_name(enum engine_outcome o); /* "ok", "died", "timeout", ... */

struct engine_start {
	const char *program;     /* absolute path; its folder is not shown to it */
	const char *model_dir;   /* absolute */
	double load_s;           /* until it says ready; 0: 120 */
	uint64_t memory;         /* bytes of private memory, 0: no limit */
	int vocab;
	const char *gpu;         /* UUID of the GPU of an engine in CUDA; NULL: on the processor */
};

struct engine {
	struct spawn_proc proc;
	int to, from;            /* our ends; -1 once closed */
	int vocab;
	int64_t ready_ns;        /* from start to ready */
	int on_gpu;
	struct engine_memory gpu; /* what it holds there */
	char isolation[CONFINE_LIST];
};

/* One batch: ids [batch, prompt]; out [batch, steps] and stamp [steps], ns from before the first byte of the request was
 * written to the arrival of the last byte of the step. */
struct engine_batch {
	int batch, prompt, steps;
	const int32_t *ids;
	double limit_s;
	int watch;               /* look at the GPU's memory after every step: not for a batch that is timed */
	int32_t *out;
	int64_t *stamp;
	int64_t sent_ns;         /* out: until the last byte of the request was taken */
};

/* How it ended. Free with engine_end_free. */
struct engine_end {
	int code;                /* exit code, -1 when a signal ended it */
	char words[96];
	double user_s, sys_s;
	uint64_t max_rss;
	int64_t gpu_bytes;       /* the most it was seen to hold of the GPU's memory; -1 unknown, or no GPU */
	struct buf log;          /* its stderr, 64 KiB at most: untrusted text */
};

int engine_open(const struct engine_start *q, struct engine *g, enum engine_outcome *o, struct err *e);
int engine_ask(struct engine *g, struct engine_batch *b, enum engine_outcome *o, struct err *e);
/* Asks it to end, waits 10 s, kills. `o` gets ENGINE_EXTRA, ENGINE_TIMEOUT or ENGINE_DIED when it did not end as it should;
 * left alone when it says something else than ENGINE_OK already. */
int engine_close(struct engine *g, enum engine_outcome *o, struct engine_end *end, struct err *e);
void engine_end_free(struct engine_end *end);

#endif
