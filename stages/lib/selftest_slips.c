/*
 * selftest_slips.c - what only the whole examination sees, and what only the inputs show. See selftest.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "selftest_part.h"

#include "buf.h"
#include "dtype.h"
#include "file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- modes of the kernel ---- */

static const struct slip {
	const char *rule, *what, *words;
	int mode;                    /* of stages/selftest/baseline/kernel.cu */
	int reps, held_out, probes;
	enum { EVERYWHERE, EMU_ONLY, FAULTS } where;
} SLIPS[] = {
	{"honest", "the whole examination", "ok", 0, 5, 1, 1, EVERYWHERE},
	{"judge.guard_read", "results that depend on bytes before an output", "guard_read", 8, 1, 0, 0,
	 EVERYWHERE},
	{"shapes.public", "wrong at any shape", "element", 7, 1, 0, 0, EVERYWHERE},
	{"shapes.held_out", "right at the public shape alone", "element", 6, 1, 1, 0, EVERYWHERE},
	{"shapes.probes", "right at the public shape alone, one look at others", "element", 6, 1, 0, 1, EVERYWHERE},
	{"fence", "writes past the end and puts back what was there", "fault", 4, 1, 0, 0, FAULTS},
	{"readonly.inputs", "writes an input", "fault", 2, 1, 0, 0, FAULTS},
	{"launch.status", "all outputs right, then a fault", "fault", 3, 1, 0, 0, EMU_ONLY},
	/* A GPU orders its threads itself. */
	{"thread.orders", "right if the last thread comes last", "exact", 5, 1, 0, 0, EMU_ONLY},
};

static int plan_of_mode(struct play *p, int mode, struct image *m, struct err *e)
{
	struct buf text = BUF_INIT, none = BUF_INIT;
	char path[PATH_MAX + 32];

	snprintf(path, sizeof path, "%s/baseline/plan.json", p->dir);
	int rc = file_read(path, PLAN_MAX_BYTES, &text, e);
	char *at = rc == 0 ? strstr(text.data, "\"const\": 0") : NULL;
	if (rc == 0 && !at)
		rc = err_set(e, EX_HARNESS, "'%s' has no mode", path);
	if (at)
		at[9] = (char)('0' + mode);
	if (rc == 0)
		rc = image_text(m, p->spec, &none, &text, path, e);
	buf_free(&text);
	buf_free(&none);
	return rc;
}

static int slip(struct play *p, const struct slip *s, struct err *e)
{
	struct proof_report *r = xcalloc(1, sizeof *r);
	struct proof_budget b = {.reps = s->reps, .held_reps = 1, .held_out = s->held_out, .probes = s->probes,
				 .probe_s = 60, .wall_s = 60};
	struct proof_arm a = p->own;
	struct image m = {0};
	int rc = plan_of_mode(p, s->mode, &m, e);

	a.plan = m.plan;
	if (rc == 0)
		rc = proof_judge(&p->proof, &a, &b, r, e);
	if (rc == 0)
		selftest_judged(p->t, s->rule, s->what, s->words, r->word);
	if (rc == 0 && !s->mode)
		selftest_say(p->t, r->row[0].exact_done != 0, "regime.exact", "exact sums are part of it",
			     r->row[0].exact_done ? "yes" : "NO");
	image_free(&m);
	free(r);
	return rc;
}

/* A kernel that takes what it finds in its workspace for its own, where an honest one has worked before on
 * the same inputs. */
static int found(struct play *p, struct err *e)
{
	struct checker_prep prep = {.rep = ++p->rep, .perturb = 1, .ratio = 1};
	struct proof_out *out = xcalloc(1, sizeof *out);
	struct proof_arm a = p->own;
	struct image m = {0};
	int rc = selftest_honest(p, &prep, e);

	if (rc == 0)
		rc = plan_of_mode(p, 1, &m, e);
	a.plan = m.plan;
	arm_close(p->w.arm);
	p->w.arm = NULL;
	p->w.a = &a;
	if (rc == 0)
		rc = proof_rep(&p->w, &prep, ARM_FORWARD, 1, out, e);
	arm_close(p->w.arm);
	p->w.arm = NULL;
	p->w.a = &p->own;
	if (rc == 0)
		selftest_judged(p->t, "poison.workspaces", "a workspace taken as it is found", "any", out->word);
	image_free(&m);
	free(out);
	return rc;
}

/* Last of all: with the stage key given away the checker draws nothing any more. */
static int published(struct play *p, struct err *e)
{
	struct axes axes;
	char key[HASH_HEX];
	struct err no = {0};

	if (checker_subkey(p->checker, key, e) < 0)
		return -1;
	int more = checker_draw(p->checker, CHECKER_HELD_OUT, 1, !selftest_on_gpu(p), &axes, &no) == 0;
	selftest_say(p->t, !more, "key.published", "nothing is drawn from a key that is public", more ? "DRAWN" : "yes");
	return 0;
}

int selftest_slips(struct play *p, struct err *e)
{
	int rc = found(p, e);

	/* Faults of a GPU stand in the log of its machine, and each costs a new worker: when somebody asks, not
	 * at the start of every run. */
	proof_close(&p->w);
	for (size_t i = 0; i < sizeof SLIPS / sizeof *SLIPS && rc == 0; i++)
		if (!selftest_on_gpu(p) || SLIPS[i].where == EVERYWHERE || (SLIPS[i].where == FAULTS && p->t->talk))
			rc = slip(p, &SLIPS[i], e);
	return rc == 0 ? published(p, e) : rc;
}

/* ---- inputs ---- */

static int by_size(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;

	return x < y ? -1 : x > y;
}

static const float *input_x(const struct play *p, size_t *n)
{
	const struct mem_buf *b = mem_find(&p->w.w.layout, MEM_INPUT, 0);

	*n = b->bytes / sizeof(float);
	return (const float *)(const void *)(p->in + b->offset);
}

/* How many different values there are. */
static size_t distinct(const float *v, size_t n)
{
	float *s = xmalloc(n * sizeof *s + 1);
	size_t k = n > 0;

	memcpy(s, v, n * sizeof *s);
	qsort(s, n, sizeof *s, by_size);
	for (size_t i = 1; i < n; i++)
		k += s[i] != s[i - 1];
	free(s);
	return k;
}

/* Rows in which a few neighbours are far larger than the rest: of normal ones one element in fifty is three
 * times the median. */
static int stretched(const float *v, size_t n, size_t row)
{
	float *s = xmalloc(row * sizeof *s);
	int k = 0;

	for (size_t at = 0; at + row <= n; at += row) {
		for (size_t i = 0; i < row; i++)
			s[i] = fabsf(v[at + i]);
		qsort(s, row, sizeof *s, by_size);
		k += s[row - row / 50] > 6 * s[row / 2];
	}
	free(s);
	return k;
}

static int drawn(struct play *p, struct checker_prep *q, uint32_t set, double *scalars, struct err *e)
{
	q->rep = ++p->rep;
	q->set = set;
	q->n_ws = p->w.n_ws;
	memcpy(q->ws, p->w.ws, sizeof q->ws);
	return checker_prepare(p->checker, &p->w.w, q, scalars, e) < 0 ? -1 : selftest_fetch(p, e);
}

/* Two sets have nothing in common, one hardly anything with itself. */
static int keyed(struct play *p, struct err *e)
{
	struct checker_prep q = {0};
	double scalars[CHECKER_SCALARS];
	size_t n, equal = 0;

	if (drawn(p, &q, 2, scalars, e) < 0)
		return -1;
	const float *x = input_x(p, &n);
	float *old = xmalloc(n * sizeof *old);
	memcpy(old, x, n * sizeof *old);
	int full = distinct(x, n) > n / 10 * 9;
	int rc = drawn(p, &q, 3, scalars, e);
	for (size_t i = 0; i < n; i++)
		equal += old[i] == x[i];
	free(old);
	selftest_say(p->t, full, "fill.entropy", "inputs repeat nothing", full ? "yes" : "NO");
	selftest_say(p->t, equal < n / 10, "fill.keyed", "no two sets of inputs alike", equal < n / 10 ? "yes" : "NO");
	return rc;
}

static int scalars_change(struct play *p, struct err *e)
{
	struct checker_prep q = {.perturb = 1};
	double first[CHECKER_SCALARS], now[CHECKER_SCALARS];
	int i = spec_input_find(p->spec, "shift"), rc = drawn(p, &q, 0, first, e), other = 0;

	for (int k = 0; k < 3 && rc == 0; k++) {
		rc = drawn(p, &q, 0, now, e);
		other |= now[i] != first[i];
	}
	selftest_say(p->t, other, "fresh.scalars", "scalars differ from rep to rep", other ? "yes" : "NO");
	return rc;
}

static int mixed_rows(struct play *p, struct err *e)
{
	struct checker_prep q = {.regime = REGIME_MIXED};
	double scalars[CHECKER_SCALARS];
	int rc = 0, k = 0;

	for (uint32_t set = 0; set < 6 && rc == 0; set++) {
		size_t n;
		rc = drawn(p, &q, set, scalars, e);
		const float *x = input_x(p, &n);
		k += stretched(x, n, 128);
	}
	selftest_say(p->t, k > 4, "fill.stretch", "rows that are quiet but for a stretch", k > 4 ? "yes" : "NO");
	return rc;
}

int selftest_inputs(struct play *p, struct err *e)
{
	static const struct {
		const char *rule;
		enum fill_regime regime;
	} ALL[] = {{"regime.mixed", REGIME_MIXED}, {"regime.near_equal", REGIME_NEAR_EQUAL},
		   {"regime.exact", REGIME_EXACT_A}, {"regime.exact", REGIME_EXACT_B}};

	for (size_t i = 0; i < sizeof ALL / sizeof *ALL; i++) {
		int has = (p->w.w.regimes & 1u << ALL[i].regime) != 0;
		selftest_say(p->t, has, ALL[i].rule, fill_regime_name(ALL[i].regime), has ? "is tried" : "is NOT tried");
	}
	return keyed(p, e) < 0 || scalars_change(p, e) < 0 || mixed_rows(p, e) < 0 ? -1 : 0;
}
