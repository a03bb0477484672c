/*
 * gpu_check.c - the checker's kernels: jobs for them, verdicts from their figures. See gpu_check.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "gpu_check.h"
#include "defence.h"

#include <math.h>
#include <string.h>

_Static_assert((int)CK_F64 == (int)DT_F64 && (int)CK_E5M2 == (int)DT_E5M2 && (int)CK_I64 == (int)DT_I64 &&
		       (int)CK_BOOL == (int)DT_BOOL && (int)CK_OUTPUTS == SPEC_MAX_TENSORS &&
		       (int)CK_BUFFERS == (int)MEM_MAX,
	       "check.h repeats these numbers");

const char *check_kernel_name(enum check_kernel k)
{
	static const char *const NAME[] = {"check_fill", "check_change", "check_poison", "check_guard",
					   "check_scan", "check_fold", "check_compare", "check_groups",
					   "check_integers", "check_hash"};

	return k < CHECK_KERNELS ? NAME[k] : "?";
}

static void *at(uint64_t address)
{
	return (void *)(uintptr_t)address;
}

static struct check_key key_of(const uint8_t key[32], const char *what, unsigned i)
{
	struct check_key k;
	uint8_t sub[32];

	rng_key(sub, key, "gpu:%s:%u", what, i);
	memcpy(k.w, sub, sizeof k.w);
	rng_wipe(sub, sizeof sub);
	return k;
}

/* ---- inputs ---- */

static void fill_kind(struct check_fill *j, const struct spec_tensor *t, const struct fill_way *w)
{
	const struct spec_fill *f = &t->fill;

	switch (f->kind) {
	case FILL_NORMAL: j->kind = CK_NORMAL; break;
	case FILL_SPIKES: j->kind = CK_SPIKES; break;
	case FILL_INDEX:
		j->kind = CK_INTEGER;
		j->from = w->from;
		j->span = (uint64_t)(w->to - w->from);
		break;
	case FILL_UNIFORM:
	case FILL_WIDE_INTEGER:
		j->kind = f->kind == FILL_UNIFORM && dtype_is_float(t->dtype) ? CK_UNIFORM : CK_INTEGER;
		j->from = (int64_t)f->low;
		j->span = (uint64_t)(f->high - f->low);
		break;
	default:
		j->kind = CK_CONSTANT;
		j->value = f->kind == FILL_CONSTANT ? f->value : 0;
	}
}

int check_queue_fill(const struct check_runner *r, const struct spec *s, const struct axes *a, int i,
		     enum fill_regime regime, const uint8_t set_key[32], uint64_t out, struct err *e)
{
	static const uint32_t MODE[] = {[FILL_PLAIN] = CK_PLAIN, [FILL_MIXED] = CK_MIXED,
					[FILL_NEAR_EQUAL] = CK_NEAR_EQUAL,
					[FILL_EXACT_WIDE] = CK_EXACT_WIDE,
					[FILL_EXACT_SMALL] = CK_EXACT_SMALL};
	const struct spec_tensor *t = &s->input[i];
	struct fill_way w;

	if (fill_describe(s, a, i, regime, &w, e) < 0)
		return -1;
	if (w.how == FILL_STRUCTURED)
		return 1;
	struct check_fill j = {
		.out = at(out), .n = w.n, .row = w.row, .dtype = (uint32_t)t->dtype, .mode = MODE[w.how],
		.bits = (uint32_t)w.bits, .mean = t->fill.mean, .std = t->fill.std, .low = t->fill.low,
		.high = t->fill.high, .rate = t->fill.rate, .scale = t->fill.scale,
	};
	fill_kind(&j, t, &w);
	j.key = key_of(set_key, fill_regime_name(regime), (unsigned)i);
	return w.n ? r->launch(r->ctx, CHECK_FILL, &j, w.n, e) : 0;
}

int check_ops(const struct spec *s, const struct axes *a, int i, enum fill_regime regime,
	      const uint8_t rep_key[32], uint64_t input, struct check_op *op, uint32_t *n, struct err *e)
{
	static const uint32_t KIND[] = {[FILL_SET] = CK_SET, [FILL_FLIP] = CK_FLIP, [FILL_SWAP] = CK_SWAP};
	struct fill_change c[FILL_CHANGES];
	int k = 0;

	if (fill_changes(s, a, i, regime, rep_key, c, &k, e) < 0)
		return -1;
	for (int x = 0; x < k; x++)
		op[(*n)++] = (struct check_op){
			.base = at(input), .at = c[x].at, .other = c[x].other, .value = c[x].value,
			.dtype = (uint32_t)s->input[i].dtype, .kind = KIND[c[x].kind], .input = (uint32_t)i,
		};
	return 0;
}

int check_queue_ops(const struct check_runner *r, uint64_t ops, uint32_t n, struct err *e)
{
	struct check_change j = {at(ops), n, SPEC_MAX_TENSORS};

	return n ? r->launch(r->ctx, CHECK_CHANGE, &j, SPEC_MAX_TENSORS, e) : 0;
}

/* ---- poison and guards ---- */

/* Repeat w bytes over 8. */
static uint64_t spread(uint64_t v, uint32_t w)
{
	for (uint32_t k = w; k < 8; k += w)
		v |= v << 8 * k;
	return v;
}

/* The words of memory.c: NaN of the type, or finite and large; random where the type has neither. */
static void masks(struct check_segment *s, int dtype, unsigned pattern)
{
	uint32_t w = (uint32_t)dtype_size((enum dtype)dtype);
	int is_float = dtype_is_float((enum dtype)dtype);
	uint64_t keep = ~0ull, set = 0;

	s->width = w ? w : 4;
	if (pattern & 1) {
		if (w == 2)
			keep = ~0x7c00ull, set = dtype == DT_F16 ? 0x6800 : 0x4800;
		else if (w == 8 && is_float)
			keep = 0x80ffffffffffffffull, set = 0x4100000000000000ull;
		else if (w == 4 || w == 0)
			keep = 0x81ffffffull, set = 0x48000000;
	} else if (is_float || w == 0) {
		set = s->width == 1 ? 0x7f : 0x7ff0ull << 8 * (s->width - 2);
	}
	uint64_t word = s->width == 8 ? ~0ull : (1ull << 8 * s->width) - 1;
	s->keep = spread(keep & word, s->width);
	s->set = spread(set, s->width);
}

static struct check_segment segment(const struct check_memory *m, uint32_t i)
{
	const struct mem_buf *b = &m->l->buf[i];
	struct check_segment s = {
		.seg = at(m->seg[i]), .len = b->seg_len, .off = b->addr - b->seg_addr,
		.used = mem_used(b, m->ws, m->n_ws), .leave = b->kind == MEM_INPUT,
	};
	if ((b->kind == MEM_OUTPUT && !DEFENCE("poison.outputs")) ||
	    (b->kind == MEM_WORKSPACE && !DEFENCE("poison.workspaces")))
		s.leave = 1;

	masks(&s, b->dtype, m->pattern);
	s.key = key_of(m->key, m->pattern & 1 ? "odd" : "even", i);
	return s;
}

int check_poison_all(const struct check_runner *r, const struct check_memory *m, struct err *e)
{
	for (uint32_t i = 0; i < m->l->n; i++) {
		struct check_segment s = segment(m, i);
		if (r->launch(r->ctx, CHECK_POISON, &s, s.len / 16, e) < 0)
			return -1;
	}
	return 0;
}

int check_guards(const struct check_runner *r, const struct check_memory *m, uint64_t report, struct err *e)
{
	for (uint32_t i = 0; i < m->l->n; i++) {
		struct check_segment s = segment(m, i);
		s.hits = at(report + offsetof(struct check_report, guard) + 8 * i);
		if (r->launch(r->ctx, CHECK_GUARD, &s, (s.len - s.used) / 16 + 2, e) < 0)
			return -1;
	}
	return 0;
}

enum mem_check check_guard_result(const struct check_report *rep, const struct mem_layout *l,
				  char name[MEM_NAME])
{
	for (uint32_t i = 0; i < l->n; i++)
		if (rep->guard[i]) {
			strcpy(name, l->buf[i].name);
			return MEM_GUARD_HIT;
		}
	name[0] = 0;
	return MEM_CLEAN;
}

int check_payloads(const struct check_runner *r, const struct check_memory *m, enum mem_kind kind,
		   const uint8_t key[32], uint64_t out, struct err *e)
{
	for (uint32_t i = 0; i < m->l->n; i++) {
		const struct mem_buf *b = &m->l->buf[i];
		if (b->kind != (int)kind || !b->bytes)
			continue;
		struct check_hash j = {at(m->seg[i] + (b->addr - b->seg_addr)), b->bytes,
				       key_of(key, "hash", i), at(out)};
		if (r->launch(r->ctx, CHECK_HASH, &j, b->bytes / 16 + 1, e) < 0)
			return -1;
	}
	return 0;
}

/* ---- comparison ---- */

static uint64_t parts(uint64_t n, uint64_t of)
{
	return (n + of - 1) / of;
}

static struct check_shape shape(uint64_t n, uint64_t group)
{
	struct check_shape s = {.n = n, .group = group};

	s.groups = n / group ? n / group : 1;
	s.per = parts(s.groups > 1 ? group : n, CK_CHUNK);
	s.last = parts(n - (s.groups - 1) * group, CK_CHUNK);
	return s;
}

static uint64_t chunks(const struct check_shape *s)
{
	return (s->groups - 1) * s->per + s->last;
}

uint64_t check_scratch(uint64_t n, uint64_t row)
{
	if (n == 0)
		return 0;
	struct check_shape rows = shape(n, compare_group(n, row ? row : 1)), whole = shape(n, n);
	uint64_t a = chunks(&rows), b = chunks(&whole);

	return (a > b ? a : b) * sizeof(struct check_sums);
}

/* Fold `per` sums of each group to one, in two scratches by turns; the last step goes to `to`, unless
 * that is 0. Where the result lies: *at_end. */
static int fold(const struct check_runner *r, struct check_fold j, const uint64_t scratch[2], int from,
		uint64_t to, int *at_end, struct err *e)
{
	while (j.per > 1 || j.last > 1 || to) {
		j.out_per = parts(j.per, CK_FOLD);
		j.out_last = parts(j.last, CK_FOLD);
		int done = j.out_per <= 1 && j.out_last <= 1;
		j.in = at(scratch[from]);
		j.out = at(done && to ? to : scratch[!from]);
		if (r->launch(r->ctx, CHECK_FOLD, &j, (j.groups - 1) * j.out_per + j.out_last, e) < 0)
			return -1;
		j.per = j.out_per;
		j.last = j.out_last;
		from = !from;
		if (done)
			break;
	}
	*at_end = from;
	return 0;
}

int check_reference_scan(const struct check_runner *r, uint64_t ref, uint64_t n, uint64_t about,
			 const uint64_t scratch[2], struct err *e)
{
	struct check_scan j = {at(ref), {0}, at(scratch[0]), at(about)};
	int end;

	if (n == 0)
		return 0;
	j.shape = shape(n, n);
	struct check_fold f = {.groups = 1, .per = j.shape.per, .last = j.shape.last};
	if (r->launch(r->ctx, CHECK_SCAN, &j, 32 * chunks(&j.shape), e) < 0)
		return -1;
	return fold(r, f, scratch, 0, about + offsetof(struct check_reference, sums), &end, e);
}

int check_reference_ok(const struct check_reference *about)
{
	return !about->nan && isfinite(about->sums.ref2);
}

static const struct mem_buf *buffer_of(const struct check_memory *m, int output, uint32_t *i)
{
	for (*i = 0; *i < m->l->n; ++*i)
		if (m->l->buf[*i].kind == MEM_OUTPUT && m->l->buf[*i].index == output)
			return &m->l->buf[*i];
	return NULL;
}

static int integers(const struct check_runner *r, const struct compare_side *s, const struct check_side *d,
		    uint64_t figures, const struct check_segment *poison, struct err *e)
{
	struct check_integers j = {.got = at(d->got), .ref = at(d->ref), .n = s->n,
				   .width = (uint32_t)dtype_size(s->dtype), .figures = at(figures),
				   .poison = *poison};

	return r->launch(r->ctx, CHECK_INTEGERS, &j, s->n, e);
}

int check_output(const struct check_runner *r, const struct compare_side *s, const struct check_side *d,
		 const struct compare_bounds *b, struct err *e)
{
	uint64_t figures = d->report + offsetof(struct check_report, out) +
			   (uint64_t)d->index * sizeof(struct check_figures);
	uint64_t total = d->report + offsetof(struct check_report, total) +
			 (uint64_t)d->index * sizeof(struct check_sums);
	uint32_t i;
	int end;

	if (s->n == 0)
		return 0;
	if (!buffer_of(d->mem, d->index, &i))
		return err_set(e, EX_HARNESS, "no memory of output %d", d->index);
	struct check_segment poison = segment(d->mem, i);
	if (!dtype_is_float(s->dtype))
		return integers(r, s, d, figures, &poison, e);
	struct check_compare j = {
		.got = at(d->got), .ref = at(d->ref), .base = d->base ? at(d->base) : NULL,
		.shape = shape(s->n, compare_group(s->n, s->row)), .about = at(d->about),
		.out = at(d->scratch[0]), .figures = at(figures), .atol_rms = b->atol_rms, .rtol = b->rtol,
		.dtype = (uint32_t)s->dtype, .exact = s->exact != 0,
		.narrow = (uint32_t)compare_narrow(b, s->dtype, s->n, s->exact), .poison = poison,
	};
	struct check_fold rows = {.groups = j.shape.groups, .per = j.shape.per, .last = j.shape.last};
	if (r->launch(r->ctx, CHECK_COMPARE, &j, 32 * chunks(&j.shape), e) < 0 ||
	    fold(r, rows, d->scratch, 0, 0, &end, e) < 0)
		return -1;
	struct check_groups g = {.in = at(d->scratch[end]), .shape = j.shape, .about = j.about,
				 .figures = j.figures, .ratio_floor = b->ratio_floor, .bias = b->bias,
				 .base = j.base != NULL, .narrow = j.narrow};
	struct check_fold all = {.groups = 1, .per = j.shape.groups, .last = j.shape.groups};
	if (r->launch(r->ctx, CHECK_GROUPS, &g, j.shape.groups, e) < 0)
		return -1;
	return fold(r, all, d->scratch, end, total, &end, e);
}

static double double_of(check_u64 bits)
{
	double v;

	memcpy(&v, &bits, sizeof v);
	return v;
}

void check_judge(struct compare_result *r, const struct check_report *rep, int index,
		 const struct compare_side *s, const struct compare_bounds *b)
{
	const struct check_figures *f = &rep->out[index];
	const struct check_sums *all = &rep->total[index];

	if (s->n == 0)
		return;
	if (!dtype_is_float(s->dtype)) {
		compare_conclude_integers(r, s, f->wrong, f->poisoned);
		return;
	}
	struct compare_figures x = {
		.wrong = f->wrong, .nonfinite = f->nonfinite, .nan = f->nan, .poisoned = f->poisoned,
		.worst = double_of(f->worst), .row_l2 = double_of(f->row_l2),
		.ratio = double_of(f->ratio), .biased = f->biased != 0,
		.rel_l2 = all->err2 == 0 ? 0 : sqrt(all->err2) / sqrt(all->ref2),
	};
	compare_conclude(r, b, s, &x);
}
