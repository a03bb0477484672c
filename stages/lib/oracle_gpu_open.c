/*
 * oracle_gpu_open.c - a workload on a GPU is opened: memory, references, regimes. See oracle_gpu.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "buf.h"
#include "oracle_gpu_part.h"

#include <stdlib.h>
#include <string.h>

enum { TRIES = 64 };

void oracle_gpu_close(struct oracle_gpu *o)
{
	if (!o)
		return;
	for (int i = 0; i < CHECKER_RING; i++)
		if (o->ring[i].at)
			cu.MemFree(o->ring[i].at);
	oracle_gpu_side_close(&o->ref);
	oracle_gpu_side_close(&o->base);
	for (int i = 0; i < 2; i++)
		if (o->scratch[i])
			cu.MemFree(o->scratch[i]);
	if (o->device)
		cu.MemFree(o->device);
	if (o->back)
		cu.MemFreeHost(o->back);
	gpu_mem_destroy(&o->mem);
	rng_wipe(o, sizeof *o);
	free(o);
}

/* Addresses by the key, apart from those of other open workloads. */
static int plan_apart(struct mem_layout *l, int fence, const uint8_t key[32],
		      const struct mem_layout *const *others, int n, struct err *e)
{
	struct rng r;
	int meets = 1, rc = 0;

	rng_open(&r, key, "addresses");
	for (int k = 0; rc == 0 && meets && k < TRIES; k++) {
		struct err why;
		meets = mem_plan(l, fence, &r, &why) < 0;
		for (int i = 0; !meets && i < n; i++)
			meets = mem_overlaps(l, others[i]);
	}
	if (meets) /* once more, for the error if it is of the sizes */
		rc = mem_plan(l, fence, &r, e) < 0 ? -1
						   : err_set(e, EX_AGAIN, "no addresses for one more workload");
	rng_close(&r);
	return rc;
}

static int open_memory(struct oracle_gpu *o, const struct checker_open *q,
		       const struct mem_layout *const *others, int n, struct err *e)
{
	struct mem_layout l = {.page = o->kit->granule};

	if (oracle_add_inputs(&l, o->spec, &o->axes, e) < 0 ||
	    oracle_add_outputs(&l, o->spec, &o->axes, 0, e) < 0 ||
	    oracle_add_workspaces(&l, q->ws, q->n_ws, e) < 0 ||
	    plan_apart(&l, q->fence, o->key, others, n, e) < 0 ||
	    gpu_mem_create(&o->mem, &l, o->kit->dev, e) < 0)
		return -1;
	for (uint32_t i = 0; i < l.n; i++) {
		o->in_off[i] = o->in_size;
		o->in_size += l.buf[i].kind == MEM_INPUT ? (l.buf[i].bytes + 511) / 256 * 256 : 0;
	}
	return 0;
}

static int open_sides(struct oracle_gpu *o, const struct checker_open *q, struct err *e)
{
	struct oracle_gpu_kit *k = o->kit;
	const struct spec *s = o->spec;
	struct gpu_module *m = NULL;

	o->has_ref = s->reference_source != NULL;
	o->has_base = q->baseline != 0;
	if (!o->has_ref && oracle_gpu_side_plan(&o->ref, s, &o->axes, 1, e) < 0)
		return -1;
	if (o->has_ref && (oracle_gpu_image_for(k, &k->ref, s, &o->axes, s->reference_source, s->reference_plan,
						&m, e) < 0 ||
			   oracle_gpu_side_open(&o->ref, k, &o->mem, k->ref.image.plan, m, s, &o->axes, 1,
						e) < 0))
		return -1;
	if (o->has_base && (oracle_gpu_image_for(k, &k->base, s, &o->axes, "baseline/kernel.cu",
						 "baseline/plan.json", &m, e) < 0 ||
			    oracle_gpu_side_open(&o->base, k, &o->mem, k->base.image.plan, m, s, &o->axes, 0,
						 e) < 0))
		return -1;
	return 0;
}

static int open_rest(struct oracle_gpu *o, struct err *e)
{
	uint64_t scratch = 0;

	for (int i = 0; i < o->spec->noutputs; i++) {
		const struct spec_tensor *t = &o->spec->output[i];
		int64_t d[SPEC_MAX_RANK], n;
		if (spec_shape(o->spec, t, &o->axes, d, &n, e) < 0)
			return -1;
		uint64_t b = check_scratch((uint64_t)n, t->rank ? (uint64_t)d[t->rank - 1] : 1);
		scratch = b > scratch ? b : scratch;
	}
	for (int i = 0; i < 2; i++)
		if (gpu_alloc(&o->scratch[i], scratch + 64, "partial sums", e) < 0)
			return -1;
	if (gpu_alloc(&o->device, sizeof *o->back, "figures", e) < 0)
		return -1;
	void *p = NULL;
	CUresult r = cu.MemHostAlloc(&p, sizeof *o->back, 0);
	o->back = p;
	for (int i = 0; i < 2 && r == CUDA_OK; i++)
		r = cu.EventCreate(&o->event[i], 0);
	if (r != CUDA_OK)
		return cuda_fail(e, "cuMemHostAlloc", r);
	rng_key(o->hash_key, o->key, "hash");
	return 0;
}

/* As many sets as fit a quarter of what is free now: several workloads may be open. */
static int open_ring(struct oracle_gpu *o, struct err *e)
{
	uint64_t one = o->in_size + o->ref.size + (o->has_base ? o->base.size : 0);
	size_t free_now = 0, total = 0;
	CUresult r = cu.MemGetInfo(&free_now, &total);

	if (r != CUDA_OK)
		return cuda_fail(e, "cuMemGetInfo", r);
	uint64_t fit = one ? free_now / 4 / one : CHECKER_RING;
	o->nslots = fit > CHECKER_RING ? CHECKER_RING : (int)fit;
	for (int i = 0; i < o->nslots; i++)
		if (gpu_alloc(&o->ring[i].at, one, "input sets", e) < 0)
			return -1;
	return 0;
}

static int all_integers(const struct oracle_gpu *o)
{
	for (int i = 0; i < o->spec->noutputs; i++)
		if (dtype_is_float(o->spec->output[i].dtype) && (o->about[i].odd || o->about[i].nan))
			return 0;
	return 1;
}

static int put_baseline(struct oracle_gpu *o, struct err *e)
{
	for (int i = 0; i < o->spec->noutputs; i++) {
		const struct mem_buf *b = mem_find(&o->mem.l, MEM_OUTPUT, i);
		CUresult r = b->bytes ? cu.MemcpyDtoDAsync(gpu_mem_at(&o->mem, b), o->base_at + o->base.off[i],
							    b->bytes, o->kit->stream)
				      : CUDA_OK;
		if (r != CUDA_OK)
			return cuda_fail(e, "cuMemcpyDtoDAsync", r);
	}
	return 0;
}

/* As oracle.c: exact regimes where results are integers and the baseline gets them to the bit. And one
 * reference of the plain regime, for its time and to have seen it run. */
static int find_regimes(struct oracle_gpu *o, int exact, struct err *e)
{
	double scalars[CHECKER_SCALARS];
	uint32_t may = fill_regimes(o->spec, &o->axes);
	struct checker_prep p = {.rep = UINT64_MAX, .set = UINT32_MAX, .perturb = 1};

	o->regimes = may & ~(1u << REGIME_EXACT_A | 1u << REGIME_EXACT_B);
	for (int g = REGIME_EXACT_A; exact && g <= REGIME_EXACT_B; g++) {
		struct compare_result r;
		if (!(may & 1u << g))
			continue;
		p.rep = UINT64_MAX - (uint64_t)g;
		p.regime = (enum fill_regime)g;
		p.ratio = 1;
		if (oracle_gpu_prepare(o, &p, scalars, e) < 0 || put_baseline(o, e) < 0 ||
		    oracle_gpu_verify(o, &r, e) < 0)
			return -1;
		o->regimes |= r.pass && all_integers(o) ? 1u << g : 0;
	}
	p.rep = UINT64_MAX;
	p.regime = REGIME_SPEC;
	p.ratio = 0;
	if (oracle_gpu_prepare(o, &p, scalars, e) < 0)
		return -1;
	o->prepared = 0;
	return 0;
}

int oracle_gpu_open(struct oracle_gpu **out, struct oracle_gpu_kit *kit, const struct spec *spec,
		    const struct axes *axes, const struct checker_open *q, const uint8_t key[32],
		    const struct mem_layout *const *others, int n, struct err *e)
{
	*out = NULL;
	if (oracle_gpu_start(kit, e) < 0)
		return -1;
	struct oracle_gpu *o = xcalloc(1, sizeof *o);
	o->kit = kit;
	o->spec = spec;
	o->axes = *axes;
	memcpy(o->key, key, sizeof o->key);
	if (open_memory(o, q, others, n, e) < 0 || open_sides(o, q, e) < 0 || open_rest(o, e) < 0 ||
	    open_ring(o, e) < 0 || find_regimes(o, q->baseline == 1, e) < 0) {
		oracle_gpu_close(o);
		return -1;
	}
	*out = o;
	return 0;
}
