/*
 * oracle.c - one workload inside the checker. See oracle.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "oracle.h"
#include "buf.h"
#include "defence.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Sets are cached only while the ring stays below this. */
#define RING_BYTES (256u << 20)

/* ---- sets ---- */

static void set_free(struct oracle_set *s)
{
	free(s->in);
	free(s->ref);
	free(s->base);
	memset(s, 0, sizeof *s);
}

void oracle_close(struct oracle *o)
{
	if (!o->borrowed)
		set_free(&o->now);
	for (int i = 0; i < CHECKER_RING; i++) {
		set_free(&o->ring[i]);
		free(o->plain[i].in);
	}
	oracle_side_close(&o->ref);
	oracle_side_close(&o->base);
	if (o->mem.in)
		mem_destroy(&o->mem);
	rng_wipe(o, sizeof *o);
}

/* Copy payloads of one kind out of (or into) memory, in order. */
static void gather(const struct mem *m, enum mem_kind kind, uint8_t *out)
{
	for (uint32_t i = 0; i < m->l.n; i++) {
		const struct mem_buf *b = &m->l.buf[i];
		if (b->kind != (int)kind)
			continue;
		memcpy(out, mem_at(m, b), b->bytes);
		out += oracle_step(b->bytes);
	}
}

static void put_inputs(const struct mem *m, const uint8_t *in)
{
	for (uint32_t i = 0; i < m->l.n; i++) {
		const struct mem_buf *b = &m->l.buf[i];
		if (b->kind != MEM_INPUT)
			continue;
		memcpy(mem_at(m, b), in, b->bytes);
		in += oracle_step(b->bytes);
	}
}

/* Run one of our own arms on the inputs in memory; its outputs go to a new buffer. */
static int side_run(struct oracle *o, struct oracle_side *d, const char *what, uint64_t bytes,
		    uint8_t **out, struct err *e)
{
	struct arm_run_opts q = {.order = ARM_FORWARD, .scrub_seed = 1, .scalars = o->now.scalars};
	struct arm_result r;

	memset(d->mem.rw, 0xff, d->mem.l.rw_bytes); /* NaN where it writes nothing */
	if (arm_run(d->arm, &q, &r, e) < 0)
		return -1;
	if (r.status != ARM_OK)
		return err_set(e, EX_HARNESS, "the %s of '%s' failed: %.300s", what, o->spec->name, r.text);
	*out = xmalloc(bytes + 1);
	gather(&d->mem, MEM_OUTPUT, *out);
	return 0;
}

static int fill_all(struct oracle *o, enum fill_regime regime, const uint8_t *set_key,
		    const uint8_t *rep_key, uint8_t *at, struct err *e)
{
	for (uint32_t i = 0; i < o->mem.l.n; i++) {
		const struct mem_buf *b = &o->mem.l.buf[i];
		if (b->kind != MEM_INPUT)
			continue;
		if (fill_input(o->spec, &o->axes, b->index, regime, set_key, rep_key, at, e) < 0)
			return -1;
		at += oracle_step(b->bytes);
	}
	return 0;
}

/* The set's content before any change, drawn once if there is room to keep it. */
static int plain_inputs(struct oracle *o, const struct checker_prep *p, const uint8_t *set_key,
			uint8_t *in, struct err *e)
{
	struct oracle_base *b = &o->plain[p->set % CHECKER_RING];

	if (o->in_bytes * CHECKER_RING > RING_BYTES)
		return fill_all(o, p->regime, set_key, NULL, in, e);
	if (!b->in || b->set != p->set || b->regime != p->regime) {
		if (!b->in)
			b->in = xmalloc(o->in_bytes + 1);
		b->set = p->set;
		b->regime = p->regime;
		if (fill_all(o, p->regime, set_key, NULL, b->in, e) < 0) {
			free(b->in);
			b->in = NULL;
			return -1;
		}
	}
	memcpy(in, b->in, o->in_bytes);
	return 0;
}

/* Inputs of the set (with the rep's changes, if any) into o->now and into memory. */
static int make_inputs(struct oracle *o, const struct checker_prep *p, struct err *e)
{
	struct oracle_set *s = &o->now;
	uint8_t set_key[32], rep_key[32];
	const struct spec *sp = o->spec;
	int r = 0;

	int fresh = DEFENCE("fresh.inputs"); /* else: one set, never changed */
	rng_key(set_key, o->key, "set:%u", fresh ? p->set : 0);
	rng_key(rep_key, o->key, "rep:%llu", fresh ? (unsigned long long)p->rep : 0);
	s->in = xmalloc(o->in_bytes + 1);
	if (p->perturb && fresh)
		r = plain_inputs(o, p, set_key, s->in, e) < 0 ||
		    fill_all(o, p->regime, NULL, rep_key, s->in, e) < 0 ? -1 : 0;
	else
		r = fill_all(o, p->regime, set_key, NULL, s->in, e);
	/* Scalars of an unperturbed rep belong to its set: the cached reference holds for them. */
	for (int i = 0; i < sp->ninputs && r == 0; i++)
		if (sp->input[i].scalar)
			r = fill_scalar(sp, &o->axes, i, p->regime, p->perturb ? rep_key : set_key,
					&s->scalars[i], e);
	rng_wipe(set_key, sizeof set_key);
	rng_wipe(rep_key, sizeof rep_key);
	if (r == 0)
		put_inputs(&o->mem, s->in);
	return r;
}

static int make_reference(struct oracle *o, struct err *e)
{
	if (o->ref.open)
		return side_run(o, &o->ref, "reference", o->ref_bytes, &o->now.ref, e);
	o->now.ref = xmalloc(o->ref_bytes + 1);
	return oracle_command(o->spec, o->spec_dir, &o->axes, o->now.in, o->now.scalars, o->now.ref, e);
}

static struct oracle_set *ring_slot(struct oracle *o, const struct checker_prep *p)
{
	uint64_t one = o->in_bytes + o->ref_bytes + o->out_bytes;

	if (p->perturb || one * CHECKER_RING > RING_BYTES)
		return NULL;
	return &o->ring[p->set % CHECKER_RING];
}

int oracle_prepare(struct oracle *o, const struct checker_prep *p, double scalars[CHECKER_SCALARS],
		   struct err *e)
{
	struct oracle_set *slot = ring_slot(o, p);
	struct rng r;
	char label[96];

	o->prepared = 0;
	if (p->ratio && !o->has_base)
		return err_set(e, EX_HARNESS, "error ratio asked of a workload opened without baseline");
	if (!o->borrowed)
		set_free(&o->now);
	memset(&o->now, 0, sizeof o->now);
	o->borrowed = 0;
	if (slot && slot->valid && slot->set == p->set && slot->regime == p->regime) {
		o->now = *slot;
		o->borrowed = 1;
		put_inputs(&o->mem, o->now.in);
	} else if (make_inputs(o, p, e) < 0 || make_reference(o, e) < 0) {
		return -1;
	}
	if (p->ratio && !o->now.base &&
	    side_run(o, &o->base, "baseline", o->out_bytes, &o->now.base, e) < 0)
		return -1;
	if (slot) {
		if (!o->borrowed)
			set_free(slot);
		o->now.valid = 1;
		o->now.set = p->set;
		o->now.regime = p->regime;
		*slot = o->now;
		o->borrowed = 1;
	}
	snprintf(label, sizeof label, "poison:%llu:%u", (unsigned long long)p->rep, p->poison);
	rng_open(&r, o->key, label);
	if (!DEFENCE("reference.apart"))
		oracle_expose(o, 0);
	mem_poison(&o->mem, &r, p->poison, p->ws, p->n_ws);
	rng_close(&r);
	if (!DEFENCE("reference.apart"))
		oracle_expose(o, 1);
	memcpy(scalars, o->now.scalars, sizeof o->now.scalars);
	o->prep = *p;
	o->prepared = 1;
	return 0;
}

/* ---- the verdict of a rep ---- */

struct outputs {
	uint8_t *got;              /* private copy of all outputs: nothing moves under the comparison */
	size_t off[SPEC_MAX_TENSORS];      /* into got, now.base and the poison */
	size_t ref_off[SPEC_MAX_TENSORS];  /* into now.ref */
	uint8_t *poison;
};

static void outputs_take(struct oracle *o, struct outputs *x)
{
	size_t at = 0, ref = 0;

	x->got = xmalloc(o->out_bytes + 1);
	x->poison = xmalloc(o->out_bytes + 1);
	for (int i = 0; i < o->spec->noutputs; i++) {
		const struct mem_buf *b = mem_find(&o->mem.l, MEM_OUTPUT, i);
		size_t n = b->bytes, w = dtype_size(o->spec->output[i].dtype);
		x->off[i] = at;
		x->ref_off[i] = ref;
		memcpy(x->got + at, mem_at(&o->mem, b), n);
		memcpy(x->poison + at, o->mem.want + b->offset, n);
		at += oracle_step(n);
		ref += oracle_step(dtype_is_float(o->spec->output[i].dtype) ? n / w * 8 : n);
	}
}

static int verify_output(struct oracle *o, const struct outputs *x, int i, struct compare_result *r,
			 struct err *e)
{
	const struct spec_tensor *t = &o->spec->output[i];
	const struct spec_compare *c = &t->compare;
	struct compare_bounds b;
	int64_t dims[SPEC_MAX_RANK], n;
	int harder = o->prep.regime != REGIME_SPEC;

	if (spec_shape(o->spec, t, &o->axes, dims, &n, e) < 0)
		return -1;
	if (!DEFENCE("every.element"))
		n /= 2;
	struct compare_side s = {
		.name = t->name, .dtype = t->dtype, .n = (size_t)n,
		.row = t->rank ? (size_t)dims[t->rank - 1] : 1,
		.got = x->got + x->off[i], .ref = o->now.ref + x->ref_off[i],
		.base = o->prep.ratio && o->now.base ? o->now.base + x->off[i] : NULL,
		.poison = x->poison + x->off[i],
		.exact = o->prep.regime == REGIME_EXACT_A || o->prep.regime == REGIME_EXACT_B,
		/* Rows of unlike magnitudes spread honest ratios twice as wide. */
		.slack = harder ? 2 : 1,
	};
	if (c->source >= 0) {
		const struct spec_tensor *in = &o->spec->input[c->source];
		const struct mem_buf *m = mem_find(&o->mem.l, MEM_INPUT, c->source);
		int64_t d[SPEC_MAX_RANK], k;
		if (!m || spec_shape(o->spec, in, &o->axes, d, &k, e) < 0)
			return -1;
		s.source = o->mem.want_in + m->offset;
		s.source_dtype = in->dtype;
		s.source_row = in->rank ? (size_t)d[in->rank - 1] : 1;
		size_t rows = s.source_row ? (size_t)k / s.source_row : 0;
		s.row = rows && s.n / rows ? s.n / rows : 1;
	}
	if (c->values >= 0) {
		s.values = x->got + x->off[c->values];
		s.values_dtype = o->spec->output[c->values].dtype;
	}
	compare_defaults(o->spec, t, &b);
	compare_output(r, c, &b, &s);
	return 0;
}

int oracle_verify(struct oracle *o, struct compare_result *r, struct err *e)
{
	struct outputs x;
	char name[MEM_NAME];
	int rc = 0;

	if (!o->prepared)
		return err_set(e, EX_HARNESS, "verify without prepare");
	compare_begin(r);
	switch (mem_guard_check(&o->mem, o->prep.ws, o->prep.n_ws, name)) {
	case MEM_GUARD_HIT:
		if (DEFENCE("judge.guard_write"))
			compare_fail(r, "judge.guard_write", name);
		break;
	case MEM_INPUT_HIT:
		if (DEFENCE("judge.input_write"))
			compare_fail(r, "judge.input_write", name);
		break;
	default: break;
	}
	outputs_take(o, &x);
	for (int i = 0; i < o->spec->noutputs && rc == 0 && (i == 0 || DEFENCE("every.output")); i++)
		rc = verify_output(o, &x, i, r, e);
	free(x.got);
	free(x.poison);
	mem_hash_outputs(&o->mem, o->hash);
	memcpy(r->hash, o->hash, sizeof r->hash);
	if (rc == 0 && !strcmp(r->code, "judge.reference"))
		rc = err_set(e, EX_BADINPUT, "the reference of '%s' gives no usable '%s'", o->spec->name,
			     r->output);
	return rc;
}

int oracle_again(struct oracle *o, int *same, struct err *e)
{
	char name[MEM_NAME];
	uint8_t now[32];

	if (!o->prepared)
		return err_set(e, EX_HARNESS, "verify without prepare");
	mem_hash_outputs(&o->mem, now);
	enum mem_check guards = mem_guard_check(&o->mem, o->prep.ws, o->prep.n_ws, name);
	if ((guards == MEM_GUARD_HIT && !DEFENCE("judge.guard_write")) ||
	    (guards == MEM_INPUT_HIT && !DEFENCE("judge.input_write")))
		guards = MEM_CLEAN;
	*same = !memcmp(now, o->hash, sizeof now) && guards == MEM_CLEAN;
	return 0;
}

/* ---- opening ---- */

static uint64_t payloads(const struct mem_layout *l, enum mem_kind kind)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < l->n; i++)
		n += l->buf[i].kind == (int)kind ? oracle_step(l->buf[i].bytes) : 0;
	return n;
}

static void put_outputs(const struct mem *m, const uint8_t *out)
{
	for (uint32_t i = 0; i < m->l.n; i++) {
		const struct mem_buf *b = &m->l.buf[i];
		if (b->kind != MEM_OUTPUT)
			continue;
		memcpy(mem_at(m, b), out, b->bytes);
		out += oracle_step(b->bytes);
	}
}

/* Every float of the reference is an integer that float32 sums hold. */
static int all_integers(const struct oracle *o)
{
	const uint8_t *at = o->now.ref;

	for (int i = 0; i < o->spec->noutputs; i++) {
		const struct mem_buf *b = mem_find(&o->mem.l, MEM_OUTPUT, i);
		size_t n = b->bytes / dtype_size((enum dtype)b->dtype);
		if (!dtype_is_float((enum dtype)b->dtype)) {
			at += oracle_step(b->bytes);
			continue;
		}
		for (size_t k = 0; k < n; k++) {
			double v;
			memcpy(&v, at + 8 * k, sizeof v);
			if (!(fabs(v) < 0x1p24) || v != nearbyint(v))
				return 0;
		}
		at += oracle_step(8 * n);
	}
	return 1;
}

/* The exact-integer regimes make sense where results are integers and the naive baseline, which
 * knows nothing of this, gives the reference's to the bit. */
static int find_regimes(struct oracle *o, struct err *e)
{
	o->regimes = fill_regimes(o->spec, &o->axes);
	for (int g = REGIME_EXACT_A; g <= REGIME_EXACT_B; g++) {
		struct checker_prep p = {.rep = UINT64_MAX - (uint64_t)g, .set = UINT32_MAX,
					 .perturb = 1, .regime = (enum fill_regime)g, .ratio = 1};
		double scalars[CHECKER_SCALARS];
		struct compare_result r;
		if (!(o->regimes & 1u << g))
			continue;
		o->regimes &= ~(1u << g);
		if (!o->has_base)
			continue;
		if (oracle_prepare(o, &p, scalars, e) < 0)
			return -1;
		put_outputs(&o->mem, o->now.base);
		if (oracle_verify(o, &r, e) < 0)
			return -1;
		o->regimes |= r.pass && all_integers(o) ? 1u << g : 0;
	}
	o->prepared = 0;
	return 0;
}

int oracle_open(struct oracle *o, struct oracle_kit *kit, const struct spec *spec, const char *device,
		const struct axes *axes, const struct checker_open *q,
		const uint8_t key[32], struct err *e)
{
	struct mem_layout l = {0};
	struct rng r;

	memset(o, 0, sizeof *o);
	o->mem.in_fd = o->mem.rw_fd = -1;
	o->spec = spec;
	o->spec_dir = kit->dir;
	o->device = device;
	o->axes = *axes;
	memcpy(o->key, key, sizeof o->key);
	rng_open(&r, key, "addresses");
	int bad = oracle_add_inputs(&l, spec, axes, e) < 0 || oracle_add_outputs(&l, spec, axes, 0, e) < 0 ||
		  oracle_add_workspaces(&l, q->ws, q->n_ws, e) < 0 || mem_plan(&l, q->fence, &r, e) < 0 ||
		  mem_create(&o->mem, &l, e) < 0;
	rng_close(&r);
	if (bad)
		return -1;
	o->in_bytes = payloads(&l, MEM_INPUT);
	o->out_bytes = payloads(&l, MEM_OUTPUT);
	struct mem_layout rl = {0};
	if (oracle_add_outputs(&rl, spec, axes, 1, e) < 0)
		return -1;
	o->ref_bytes = payloads(&rl, MEM_OUTPUT);
	o->has_base = q->baseline;
	if (spec->reference_source &&
	    (oracle_kit_image(kit, &kit->ref, &kit->has_ref, spec, spec->reference_source,
			      spec->reference_plan, e) < 0 ||
	     oracle_side_open(o, &o->ref, &kit->ref, 1, e) < 0))
		return -1;
	if (q->baseline && (oracle_kit_image(kit, &kit->base, &kit->has_base, spec, "baseline/kernel.cu",
					     "baseline/plan.json", e) < 0 ||
			    oracle_side_open(o, &o->base, &kit->base, 0, e) < 0))
		return -1;
	return find_regimes(o, e);
}
