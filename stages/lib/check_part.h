/*
 * check_part.h - what the files of tools/check.c share. Private to it and check_*.c here.
 *
 * The tool plays candidate: it writes outputs of its own and asks the checker about them. On emu it
 * maps the memory it was given. On a GPU it has copies, which the checker takes and gives back
 * (checker_copy): only with a key that is thrown away, so never in a run.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_CHECK_PART_H
#define TS_CHECK_PART_H

#include "checker_call.h"
#include "gpu.h"
#include "image.h"
#include "proof.h"
#include "spec.h"

struct check {
	const char *dir, *device;
	struct spec *spec;
	struct image fast, sanitize;
	struct checker *checker;
	struct proof proof;
	struct proof_arm arm;
	int failures;
	int on_gpu;
	struct gpu gpu;
	/* The workload in use. */
	struct proof_work w;
	uint8_t *in, *rw;      /* mapped: the memory itself, on a GPU the copies */
	double scalars[CHECKER_SCALARS];
	uint8_t *out;          /* honest outputs of this rep, as the rw memfd held them */
	uint64_t rep;
};

void check_say(struct check *c, int ok, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* check_memory.c: one workload, mapped here. */
int check_use(struct check *c, enum checker_mode mode, uint32_t index, struct err *e);
void check_unuse(struct check *c);
/* From the GPU into the copies, and back: all inputs and outputs. Nothing to do on emu. */
int check_get(struct check *c, struct err *e);
int check_put(struct check *c, struct err *e);
/* New inputs; runs the baseline; keeps its honest outputs in c->out. */
int check_honest(struct check *c, struct checker_prep *p, struct err *e);
/* The same inputs again, memory poisoned afresh, nothing run. */
int check_again(struct check *c, struct checker_prep *p, struct err *e);
const struct mem_buf *check_out(const struct check *c, int i);

/* check_fakes.c */
int check_fakes(struct check *c, double *least, struct err *e);
int check_reference(struct check *c, struct err *e); /* of the workload in use */
int check_inputs(struct check *c, struct err *e);

/* check_noise.c: the baseline against itself, and on a GPU the figures of the machine. */
int check_noise(struct check *c, uint32_t workload, struct err *e);

#endif
