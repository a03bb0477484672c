/*
 * oracle_gpu.c - inputs, sets and references of a workload on a GPU. See oracle_gpu.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "buf.h"
#include "defence.h"
#include "oracle_gpu_part.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRY(call, name) do { \
	CUresult r_ = (call); \
	if (r_ != CUDA_OK) \
		return cuda_fail(e, name, r_); \
} while (0)

int oracle_gpu_wait(struct oracle_gpu *o, struct err *e)
{
	TRY(cu.StreamSynchronize(o->kit->stream), "cuStreamSynchronize");
	return 0;
}

uint64_t oracle_gpu_report(const struct oracle_gpu *o)
{
	return o->device + offsetof(struct oracle_gpu_back, report);
}

int oracle_gpu_zero(struct oracle_gpu *o, struct err *e)
{
	TRY(cu.MemsetD8Async(oracle_gpu_report(o), 0, sizeof(struct check_report), o->kit->stream),
	    "cuMemsetD8Async");
	return 0;
}

int oracle_gpu_fetch(struct oracle_gpu *o, struct err *e)
{
	TRY(cu.MemcpyDtoHAsync(&o->back->report, oracle_gpu_report(o), sizeof(struct check_report),
			       o->kit->stream), "cuMemcpyDtoHAsync");
	return oracle_gpu_wait(o, e);
}

/* The synchronous copy may still be under way when it returns, and our stream does not wait for it. */
static int put(struct oracle_gpu *o, uint64_t at, const void *host, uint64_t bytes, struct err *e)
{
	if (bytes)
		TRY(cu.MemcpyHtoDAsync(at, host, bytes, o->kit->stream), "cuMemcpyHtoDAsync");
	return oracle_gpu_wait(o, e);
}

/* ---- inputs ---- */

static uint64_t payload(const struct oracle_gpu *o, uint32_t i)
{
	return gpu_mem_at(&o->mem, &o->mem.l.buf[i]);
}

static int fill_one(struct oracle_gpu *o, uint32_t i, const struct checker_prep *p,
		    const uint8_t set_key[32], struct err *e)
{
	const struct mem_buf *b = &o->mem.l.buf[i];
	int r = check_queue_fill(&o->kit->runner, o->spec, &o->axes, b->index, p->regime, set_key,
				 payload(o, i), e);

	if (r <= 0)
		return r;
	uint8_t *host = xmalloc(b->bytes + 1);
	r = fill_input(o->spec, &o->axes, b->index, p->regime, set_key, NULL, host, e);
	if (r == 0)
		r = put(o, payload(o, i), host, b->bytes, e);
	rng_wipe(host, b->bytes);
	free(host);
	return r;
}

/* Between the workload's memory and a set's. */
static int copy_inputs(struct oracle_gpu *o, const struct oracle_gpu_set *s, int to_set, struct err *e)
{
	for (uint32_t i = 0; i < o->mem.l.n; i++) {
		const struct mem_buf *b = &o->mem.l.buf[i];
		uint64_t here = payload(o, i), there = s->at + o->in_off[i];
		if (b->kind != MEM_INPUT || !b->bytes)
			continue;
		TRY(cu.MemcpyDtoDAsync(to_set ? there : here, to_set ? here : there, b->bytes,
				       o->kit->stream), "cuMemcpyDtoDAsync");
	}
	return 0;
}

/* The set's content as drawn, in the workload's memory; kept in its slot. */
static int base_content(struct oracle_gpu *o, const struct checker_prep *p, struct oracle_gpu_set *slot,
			struct err *e)
{
	uint8_t set_key[32];
	int r = 0;

	if (slot && slot->valid && slot->set == p->set && slot->regime == p->regime)
		return copy_inputs(o, slot, 0, e);
	rng_key(set_key, o->key, "set:%u", DEFENCE("fresh.inputs") ? p->set : 0);
	for (uint32_t i = 0; r == 0 && i < o->mem.l.n; i++)
		if (o->mem.l.buf[i].kind == MEM_INPUT)
			r = fill_one(o, i, p, set_key, e);
	rng_wipe(set_key, sizeof set_key);
	if (r < 0 || !slot)
		return r;
	slot->valid = slot->has_ref = slot->has_base = 0;
	if (copy_inputs(o, slot, 1, e) < 0)
		return -1;
	slot->set = p->set;
	slot->regime = p->regime;
	slot->valid = 1;
	return 0;
}

static int change_inputs(struct oracle_gpu *o, const struct checker_prep *p, const uint8_t rep_key[32],
			 struct err *e)
{
	uint64_t ops = o->device + offsetof(struct oracle_gpu_back, op);
	uint32_t n = 0;

	for (uint32_t i = 0; i < o->mem.l.n; i++)
		if (o->mem.l.buf[i].kind == MEM_INPUT &&
		    check_ops(o->spec, &o->axes, o->mem.l.buf[i].index, p->regime, rep_key, payload(o, i),
			      o->back->op, &n, e) < 0)
			return -1;
	if (n == 0)
		return 0;
	TRY(cu.MemcpyHtoDAsync(ops, o->back->op, n * sizeof o->back->op[0], o->kit->stream),
	    "cuMemcpyHtoDAsync");
	return check_queue_ops(&o->kit->runner, ops, n, e);
}

static int make_scalars(struct oracle_gpu *o, const struct checker_prep *p, const uint8_t rep_key[32],
			double *scalars, struct err *e)
{
	uint8_t set_key[32];
	int r = 0;

	memset(scalars, 0, CHECKER_SCALARS * sizeof *scalars);
	rng_key(set_key, o->key, "set:%u", DEFENCE("fresh.inputs") ? p->set : 0);
	for (int i = 0; r == 0 && i < o->spec->ninputs; i++)
		if (o->spec->input[i].scalar)
			r = fill_scalar(o->spec, &o->axes, i, p->regime, p->perturb ? rep_key : set_key,
					&scalars[i], e);
	rng_wipe(set_key, sizeof set_key);
	return r;
}

/* ---- references ---- */

/* By a command: over the host. */
static int command_reference(struct oracle_gpu *o, const double *scalars, struct err *e)
{
	uint64_t in = 0, out = 0;
	int r = oracle_gpu_wait(o, e);

	for (uint32_t i = 0; i < o->mem.l.n; i++)
		in += o->mem.l.buf[i].kind == MEM_INPUT ? oracle_step(o->mem.l.buf[i].bytes) : 0;
	for (int i = 0; i < o->spec->noutputs; i++)
		out += oracle_step(o->ref.bytes[i]);
	uint8_t *host = xmalloc(in + 1), *ref = xmalloc(out + 1), *at = host;
	CUresult c = CUDA_OK;
	for (uint32_t i = 0; r == 0 && c == CUDA_OK && i < o->mem.l.n; i++) {
		const struct mem_buf *b = &o->mem.l.buf[i];
		if (b->kind != MEM_INPUT)
			continue;
		c = b->bytes ? cu.MemcpyDtoH(at, payload(o, i), b->bytes) : CUDA_OK;
		at += oracle_step(b->bytes);
	}
	if (r == 0 && c == CUDA_OK)
		r = oracle_command(o->spec, o->kit->dir, &o->axes, host, scalars, ref, e);
	at = ref;
	for (int i = 0; r == 0 && c == CUDA_OK && i < o->spec->noutputs; at += oracle_step(o->ref.bytes[i]), i++)
		r = put(o, o->ref.out + o->ref.off[i], at, o->ref.bytes[i], e);
	rng_wipe(host, in);
	free(host);
	free(ref);
	return c == CUDA_OK ? r : cuda_fail(e, "copies of a reference command", c);
}

/* Reference of the inputs in memory, and what is known of it, into o->ref and o->about. */
static int make_reference(struct oracle_gpu *o, const double *scalars, struct err *e)
{
	uint64_t about = o->device + offsetof(struct oracle_gpu_back, about);
	CUstream s = o->kit->stream;

	TRY(cu.EventRecord(o->event[0], s), "cuEventRecord");
	int r = o->has_ref ? oracle_gpu_side_run(&o->ref, o->kit, o->spec, scalars, e)
			   : command_reference(o, scalars, e);
	if (r < 0)
		return -1;
	TRY(cu.EventRecord(o->event[1], s), "cuEventRecord");
	TRY(cu.MemsetD8Async(about, 0, sizeof o->about, s), "cuMemsetD8Async");
	for (int i = 0; i < o->spec->noutputs; i++)
		if (dtype_is_float(o->spec->output[i].dtype) &&
		    check_reference_scan(&o->kit->runner, o->ref.out + o->ref.off[i], o->ref.bytes[i] / 8,
					 about + (uint64_t)i * sizeof(struct check_reference), o->scratch, e) < 0)
			return -1;
	TRY(cu.MemcpyDtoHAsync(o->back->about, about, sizeof o->about, s), "cuMemcpyDtoHAsync");
	struct err why = {0};
	if (oracle_gpu_wait(o, &why) < 0)
		return err_set(e, why.code, "the reference of '%.60s' failed: %.300s", o->spec->name, why.text);
	memcpy(o->about, o->back->about, sizeof o->about);
	float ms = 0;
	if (cu.EventElapsedTime(&ms, o->event[0], o->event[1]) == CUDA_OK)
		o->ref_ns = (int64_t)(ms * 1e6f);
	return 0;
}

/* o->about is in host memory and on the device: a cached one goes back there. */
static int about_back(struct oracle_gpu *o, struct err *e)
{
	memcpy(o->back->about, o->about, sizeof o->about);
	TRY(cu.MemcpyHtoDAsync(o->device + offsetof(struct oracle_gpu_back, about), o->back->about,
			       sizeof o->about, o->kit->stream), "cuMemcpyHtoDAsync");
	return 0;
}

static int references(struct oracle_gpu *o, const struct checker_prep *p, struct oracle_gpu_set *slot,
		      const double *scalars, struct err *e)
{
	uint64_t ref = slot ? slot->at + o->in_size : 0, base = ref + o->ref.size;
	CUstream s = o->kit->stream;

	o->ref_at = o->ref.out;
	o->base_at = o->base.out;
	if (slot && slot->has_ref) {
		memcpy(o->about, slot->about, sizeof o->about);
		o->ref_at = ref;
		if (about_back(o, e) < 0)
			return -1;
	} else {
		if (make_reference(o, scalars, e) < 0)
			return -1;
		if (slot && o->ref.size)
			TRY(cu.MemcpyDtoDAsync(ref, o->ref.out, o->ref.size, s), "cuMemcpyDtoDAsync");
		if (slot) {
			memcpy(slot->about, o->about, sizeof o->about);
			slot->has_ref = 1;
		}
	}
	if (!p->ratio)
		return 0;
	if (slot && slot->has_base) {
		o->base_at = base;
		return 0;
	}
	if (oracle_gpu_side_run(&o->base, o->kit, o->spec, scalars, e) < 0)
		return -1;
	if (slot && o->base.size)
		TRY(cu.MemcpyDtoDAsync(base, o->base.out, o->base.size, s), "cuMemcpyDtoDAsync");
	if (slot)
		slot->has_base = 1;
	return 0;
}

/* ---- a rep ---- */

static int finish(struct oracle_gpu *o, const struct checker_prep *p, struct err *e)
{
	const struct check_runner *r = &o->kit->runner;

	o->prep = *p;
	o->view = (struct check_memory){.l = &o->mem.l, .seg = o->mem.seg, .pattern = p->poison,
					.ws = o->prep.ws, .n_ws = o->prep.n_ws};
	rng_key(o->view.key, o->key, "poison:%llu:%u", (unsigned long long)p->rep, p->poison);
	if (check_poison_all(r, &o->view, e) < 0 || oracle_gpu_zero(o, e) < 0 ||
	    check_payloads(r, &o->view, MEM_INPUT, o->hash_key,
			   oracle_gpu_report(o) + offsetof(struct check_report, in_hash), e) < 0 ||
	    oracle_gpu_fetch(o, e) < 0)
		return -1;
	memcpy(o->in_hash, o->back->report.in_hash, sizeof o->in_hash);
	return 0;
}

int oracle_gpu_prepare(struct oracle_gpu *o, const struct checker_prep *p,
		       double scalars[CHECKER_SCALARS], struct err *e)
{
	struct oracle_gpu_set *slot = o->nslots ? &o->ring[p->set % (uint32_t)o->nslots] : NULL;
	uint8_t rep_key[32];

	o->prepared = 0;
	if (p->ratio && !o->has_base)
		return err_set(e, EX_HARNESS, "error ratio asked of a workload opened without baseline");
	if (p->n_ws > CHECKER_WS || p->regime >= REGIME_COUNT)
		return err_set(e, EX_HARNESS, "malformed preparation");
	rng_key(rep_key, o->key, "rep:%llu", (unsigned long long)p->rep);
	int r = make_scalars(o, p, rep_key, scalars, e);
	if (r == 0)
		r = base_content(o, p, slot, e);
	if (r == 0 && p->perturb && DEFENCE("fresh.inputs"))
		r = change_inputs(o, p, rep_key, e);
	rng_wipe(rep_key, sizeof rep_key);
	/* A perturbed rep's reference is no set's. */
	if (r == 0)
		r = references(o, p, p->perturb ? NULL : slot, scalars, e);
	if (r == 0)
		r = finish(o, p, e);
	o->prepared = r == 0;
	return r;
}

const struct gpu_mem *oracle_gpu_memory(const struct oracle_gpu *o)
{
	return &o->mem;
}

uint32_t oracle_gpu_regimes(const struct oracle_gpu *o)
{
	return o->regimes;
}

int64_t oracle_gpu_reference_ns(const struct oracle_gpu *o)
{
	return o->ref_ns;
}
