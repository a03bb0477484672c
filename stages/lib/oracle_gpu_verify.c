/*
 * oracle_gpu_verify.c - the verdict of a rep on a GPU. See oracle_gpu.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "buf.h"
#include "defence.h"
#include "oracle_gpu_part.h"

#include <stdlib.h>
#include <string.h>

/* Which outputs the kernels judge; the rest is for the host. */
static int by_kernels(const struct spec_tensor *t)
{
	return t->compare.kind == COMPARE_TOLERANCE || t->compare.kind == COMPARE_EXACT;
}

static int side_of(const struct oracle_gpu *o, int i, struct compare_side *s, struct compare_bounds *b,
		   struct err *e)
{
	const struct spec_tensor *t = &o->spec->output[i];
	int64_t dims[SPEC_MAX_RANK], n;
	enum fill_regime g = o->prep.regime;

	if (spec_shape(o->spec, t, &o->axes, dims, &n, e) < 0)
		return -1;
	*s = (struct compare_side){
		.name = t->name, .dtype = t->dtype, .n = (size_t)n,
		.row = t->rank ? (size_t)dims[t->rank - 1] : 1,
		/* an address on the GPU: only asked whether there is one */
		.base = o->prep.ratio ? &o->base : NULL,
		.exact = g == REGIME_EXACT_A || g == REGIME_EXACT_B || t->compare.kind == COMPARE_EXACT,
		.slack = g != REGIME_SPEC || o->prep.ratio == CHECKER_RATIO_LOOSE ? 2 : 1, /* as oracle.c */
	};
	compare_defaults(o->spec, t, b);
	return 0;
}

static uint64_t output_at(const struct oracle_gpu *o, int i)
{
	return gpu_mem_at(&o->mem, mem_find(&o->mem.l, MEM_OUTPUT, i));
}

static int queue_output(struct oracle_gpu *o, int i, struct err *e)
{
	struct compare_side s;
	struct compare_bounds b;

	if (side_of(o, i, &s, &b, e) < 0)
		return -1;
	struct check_side d = {
		.index = i, .got = output_at(o, i), .ref = o->ref_at + o->ref.off[i],
		.base = o->prep.ratio ? o->base_at + o->base.off[i] : 0,
		.about = o->device + offsetof(struct oracle_gpu_back, about) +
			 (uint64_t)i * sizeof(struct check_reference),
		.scratch = {o->scratch[0], o->scratch[1]}, .report = oracle_gpu_report(o), .mem = &o->view,
	};
	return check_output(&o->kit->runner, &s, &d, &b, e);
}

static void *fetch(uint64_t at, uint64_t bytes, struct err *e)
{
	void *p = xmalloc(bytes + 1);
	CUresult r = bytes ? cu.MemcpyDtoH(p, at, bytes) : CUDA_OK;

	if (r == CUDA_OK)
		return p;
	free(p);
	cuda_fail(e, "cuMemcpyDtoH", r);
	return NULL;
}

/* Sets and orders, by compare_sets.c on copies. */
static int judge_on_host(struct oracle_gpu *o, int i, struct compare_side *s, struct compare_result *r,
			 const struct compare_bounds *b, struct err *e)
{
	const struct spec_compare *c = &o->spec->output[i].compare;
	const struct spec_tensor *in = c->source >= 0 ? &o->spec->input[c->source] : NULL;
	const struct mem_buf *m = in ? mem_find(&o->mem.l, MEM_INPUT, c->source) : NULL;
	const struct mem_buf *v = c->values >= 0 ? mem_find(&o->mem.l, MEM_OUTPUT, c->values) : NULL;
	int64_t d[SPEC_MAX_RANK], k = 0;
	void *got = NULL, *ref = NULL, *source = NULL, *values = NULL;

	if (in && (!m || spec_shape(o->spec, in, &o->axes, d, &k, e) < 0))
		return -1;
	int ok = (got = fetch(output_at(o, i), mem_find(&o->mem.l, MEM_OUTPUT, i)->bytes, e)) &&
		 (ref = fetch(o->ref_at + o->ref.off[i], o->ref.bytes[i], e)) &&
		 (!m || (source = fetch(gpu_mem_at(&o->mem, m), m->bytes, e))) &&
		 (!v || (values = fetch(gpu_mem_at(&o->mem, v), v->bytes, e)));
	s->got = got;
	s->ref = ref;
	s->base = NULL;
	if (in) {
		s->source = source;
		s->source_dtype = in->dtype;
		s->source_row = in->rank ? (size_t)d[in->rank - 1] : 1;
		size_t rows = s->source_row ? (size_t)k / s->source_row : 0;
		s->row = rows && s->n / rows ? s->n / rows : 1;
	}
	if (v) {
		s->values = values;
		s->values_dtype = o->spec->output[c->values].dtype;
	}
	if (ok)
		compare_output(r, c, b, s);
	free(got);
	free(ref);
	free(source);
	free(values);
	return ok ? 0 : -1;
}

static int judge_output(struct oracle_gpu *o, const struct check_report *rep, int i,
			struct compare_result *r, struct err *e)
{
	struct compare_side s;
	struct compare_bounds b;

	if (side_of(o, i, &s, &b, e) < 0)
		return -1;
	if (s.n && dtype_is_float(s.dtype) && !check_reference_ok(&o->about[i]))
		return err_set(e, EX_BADINPUT, "the reference of '%s' gives no usable '%s'", o->spec->name, s.name);
	if (!by_kernels(&o->spec->output[i]))
		return judge_on_host(o, i, &s, r, &b, e);
	check_judge(r, rep, i, &s, &b);
	return 0;
}

/* Guards, inputs and outputs as they are now, by figures in the report. */
static int look(struct oracle_gpu *o, int compare, struct err *e)
{
	const struct check_runner *r = &o->kit->runner;
	uint64_t rep = oracle_gpu_report(o);

	if (!o->prepared)
		return err_set(e, EX_HARNESS, "verify without prepare");
	if (oracle_gpu_zero(o, e) < 0 || check_guards(r, &o->view, rep, e) < 0)
		return -1;
	for (int i = 0; compare && i < o->spec->noutputs; i++)
		if (by_kernels(&o->spec->output[i]) && queue_output(o, i, e) < 0)
			return -1;
	if (check_payloads(r, &o->view, MEM_INPUT, o->hash_key, rep + offsetof(struct check_report, in_hash),
			   e) < 0 ||
	    check_payloads(r, &o->view, MEM_OUTPUT, o->hash_key, rep + offsetof(struct check_report, hash),
			   e) < 0)
		return -1;
	return oracle_gpu_fetch(o, e);
}

int oracle_gpu_verify(struct oracle_gpu *o, struct compare_result *r, struct err *e)
{
	const struct check_report *rep = &o->back->report;
	char name[MEM_NAME];

	compare_begin(r);
	if (look(o, 1, e) < 0)
		return -1;
	if (check_guard_result(rep, &o->mem.l, name) != MEM_CLEAN && DEFENCE("judge.guard_write"))
		compare_fail(r, "judge.guard_write", name);
	if (memcmp(rep->in_hash, o->in_hash, sizeof o->in_hash) && DEFENCE("judge.input_write"))
		compare_fail(r, "judge.input_write", "");
	for (int i = 0; i < o->spec->noutputs && (i == 0 || DEFENCE("every.output")); i++)
		if (judge_output(o, rep, i, r, e) < 0)
			return -1;
	memcpy(o->hash, rep->hash, sizeof o->hash);
	memcpy(r->hash, o->hash, sizeof r->hash);
	if (!strcmp(r->code, "judge.reference"))
		return err_set(e, EX_BADINPUT, "the reference of '%s' gives no usable '%s'", o->spec->name,
			       r->output);
	return 0;
}

int oracle_gpu_again(struct oracle_gpu *o, int *same, struct err *e)
{
	const struct check_report *rep = &o->back->report;
	char name[MEM_NAME];

	if (look(o, 0, e) < 0)
		return -1;
	*same = !memcmp(rep->hash, o->hash, sizeof o->hash) &&
		(!memcmp(rep->in_hash, o->in_hash, sizeof o->in_hash) || !DEFENCE("judge.input_write")) &&
		(check_guard_result(rep, &o->mem.l, name) == MEM_CLEAN || !DEFENCE("judge.guard_write"));
	return 0;
}
