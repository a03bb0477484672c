/*
 * arm_cuda.c - an arm on a GPU: a worker with one slot. See arm.h, worker_call.h.
 *
 * The worker comes from the pool, so that twenty shapes in a row cost one start; one that failed is
 * never given back. Nothing is wiped between reps: shared and local memory are scrubbed and globals
 * restored before each of them, and nothing of the candidate runs in between.
 *
 * SPDX-License-Identifier: MIT
 */
#include "arm_impl.h"
#include "buf.h"
#include "cubin.h"
#include "file.h"
#include "hash.h"
#include "worker_pool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ARTEFACT_MOST = 256 << 20 };

struct cuda {
	struct worker *worker;
	char gpu[64];
	struct buf artefact;
	struct cubin *cubin;
	int64_t timeout_ns;
	int mapped, loaded, dead;
	struct worker_result early; /* the load was refused: what the first run says */
};

static int artefact_read(struct cuda *c, const struct arm_opts *o, struct err *e)
{
	uint8_t digest[32];
	char hex[HASH_HEX];

	if (file_read(o->artefact, ARTEFACT_MOST, &c->artefact, e) < 0)
		return -1;
	hash_bytes(c->artefact.data, c->artefact.len, digest);
	hash_to_hex(digest, hex);
	if (o->artefact_sha && strcmp(hex, o->artefact_sha) != 0)
		return err_set(e, EX_BADINPUT, "'%s' is not the artefact that was made", o->artefact);
	c->cubin = xcalloc(1, sizeof *c->cubin);
	return cubin_parse(c->artefact.data, c->artefact.len, c->cubin, e);
}

static void cuda_free(struct cuda *c)
{
	buf_free(&c->artefact);
	free(c->cubin);
	free(c);
}

/* Residency of the entries is known from their registers: before the plan is resolved. */
static int cuda_before(struct arm *a, const struct arm_opts *o, struct err *e)
{
	struct cuda *c = xcalloc(1, sizeof *c);

	a->impl = c;
	if (!o->gpu || strlen(o->gpu) >= sizeof c->gpu) {
		cuda_free(c);
		return err_set(e, EX_HARNESS, "an arm on '%s' was given no GPU", o->device);
	}
	snprintf(c->gpu, sizeof c->gpu, "%s", o->gpu);
	if (artefact_read(c, o, e) < 0) {
		cuda_free(c);
		return -1;
	}
	cubin_facts(c->cubin, &a->facts);
	return 0;
}

static void cuda_undo(struct arm *a)
{
	cuda_free(a->impl);
}

static void cuda_close(struct arm *a)
{
	struct cuda *c = a->impl;
	struct err e;

	if (c->loaded && !c->dead && worker_unload(c->worker, 0, &e) < 0)
		c->dead = 1;
	if (c->mapped && !c->dead && worker_unmap(c->worker, 0, &e) < 0)
		c->dead = 1;
	if (c->dead)
		worker_stop(c->worker);
	else
		worker_pool_give(c->worker, c->gpu);
	cuda_free(c);
}

static int cuda_open_arm(struct arm *a, const struct arm_opts *o, struct err *e)
{
	struct cuda *c = a->impl;
	struct worker_opts w = {.gpu = c->gpu, .timeout_ns = o->timeout_ns};
	const int mem[1] = {0};

	c->timeout_ns = o->timeout_ns > 0 ? o->timeout_ns : 10000000000;
	if (worker_pool_take(&c->worker, &w, e) < 0) {
		c->dead = 1;
		goto fail;
	}
	snprintf(a->isolation, sizeof a->isolation, "%s", worker_isolation(c->worker));
	if (worker_map(c->worker, 0, o->layout, o->fd, e) < 0) {
		c->dead = 1;
		goto fail;
	}
	c->mapped = 1;
	if (worker_load(c->worker, 0, c->artefact.data, c->artefact.len, &a->l, o->spec, 1, mem, &c->early, e) < 0) {
		c->dead = 1;
		goto fail;
	}
	c->loaded = c->early.outcome == WORKER_OK;
	return 0;
fail:
	cuda_close(a);
	return -1;
}

static enum arm_status status_of(enum worker_outcome o)
{
	switch (o) {
	case WORKER_OK: return ARM_OK;
	case WORKER_REFUSED: return ARM_REFUSED;
	case WORKER_FAULT: return ARM_FAULT;
	case WORKER_TIMEOUT: return ARM_TIMEOUT;
	case WORKER_DIED: break;
	}
	return ARM_PROTOCOL;
}

static int cuda_run(struct arm *a, const struct arm_run_opts *r, struct arm_result *out, struct err *e)
{
	struct cuda *c = a->impl;
	double scalars[1][CHECKER_SCALARS] = {{0}};
	struct worker_run q = {.scrub_seed = r->scrub_seed, .timeout_ns = c->timeout_ns};
	struct worker_result res = c->early;

	if (c->dead)
		return err_set(e, EX_HARNESS, "run on an arm that has failed");
	if (r->scalars) {
		memcpy(scalars[0], r->scalars, (size_t)a->spec->ninputs * sizeof *r->scalars);
		q.scalars = (const double(*)[CHECKER_SCALARS])scalars;
	}
	if (c->loaded && worker_run(c->worker, 0, &q, &res, e) < 0) {
		c->dead = 1;
		return -1;
	}
	out->status = status_of(res.outcome);
	out->elapsed_ns = res.elapsed_ns;
	out->wall_ns = res.wall_ns;
	out->late_ns = 0; /* no code of a candidate runs between two reps */
	out->killed = res.killed;
	snprintf(out->text, sizeof out->text, "%s", res.text);
	c->dead = !worker_alive(c->worker);
	return 0;
}

static int cuda_alive(struct arm *a)
{
	const struct cuda *c = a->impl;

	return c->loaded && !c->dead;
}

static int64_t cuda_late(struct arm *a)
{
	(void)a;
	return 0;
}

const struct arm_ops ARM_CUDA_OPS = {
	.before = cuda_before, .open = cuda_open_arm, .run = cuda_run, .close = cuda_close, .alive = cuda_alive,
	.late = cuda_late, .undo = cuda_undo,
};
