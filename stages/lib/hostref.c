/*
 * hostref.c - see hostref.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "hostref.h"

#include <math.h>
#include <string.h>

struct op {
	const struct spec *s;
	const void *const *in;
	const double *scalar;
	double *out;
	int64_t d[SPEC_MAX_TENSORS][SPEC_MAX_RANK]; /* dims of inputs */
	int64_t n;                                  /* elements of the output */
};

static double at(const struct op *o, int input, int64_t i)
{
	return dtype_load(o->s->input[input].dtype, o->in[input], (size_t)i);
}

/* Compensated sum: another order and more bits than a plain loop. */
struct sum {
	double s, c;
};

static void add(struct sum *k, double v)
{
	double t = k->s + v;

	k->c += fabs(k->s) >= fabs(v) ? (k->s - t) + v : (v - t) + k->s;
	k->s = t;
}

static void gemm(struct op *o)
{
	int64_t m = o->d[0][0], kk = o->d[0][1], n = o->d[1][1];

	for (int64_t i = m - 1; i >= 0; i--)
		for (int64_t j = n - 1; j >= 0; j--) {
			struct sum x = {0, 0};
			for (int64_t k = kk - 1; k >= 0; k--)
				add(&x, at(o, 0, i * kk + k) * at(o, 1, k * n + j));
			o->out[i * n + j] = x.s + x.c;
		}
}

static void softmax(struct op *o)
{
	int64_t cols = o->d[0][o->s->input[0].rank - 1];

	for (int64_t r = 0; r < o->n; r += cols) {
		struct sum x = {0, 0};
		double top = -INFINITY;
		for (int64_t c = cols - 1; c >= 0; c--)
			top = fmax(top, at(o, 0, r + c));
		for (int64_t c = cols - 1; c >= 0; c--)
			add(&x, exp(at(o, 0, r + c) - top));
		double log_sum = log(x.s + x.c) + top;
		for (int64_t c = 0; c < cols; c++)
			o->out[r + c] = exp(at(o, 0, r + c) - log_sum);
	}
}

static void transpose(struct op *o)
{
	int64_t rows = o->d[0][0], cols = o->d[0][1];

	for (int64_t i = 0; i < o->n; i++)
		o->out[i] = at(o, 0, i % rows * cols + i / rows);
}

static void rmsnorm(struct op *o)
{
	int64_t h = o->d[0][1];

	for (int64_t r = 0; r < o->n; r += h) {
		struct sum x = {0, 0};
		for (int64_t c = h - 1; c >= 0; c--)
			add(&x, at(o, 0, r + c) * at(o, 0, r + c));
		double root = sqrt((x.s + x.c) / (double)h + o->scalar[2]);
		for (int64_t c = 0; c < h; c++)
			o->out[r + c] = at(o, 1, c) * (at(o, 0, r + c) / root);
	}
}

static void vector_add(struct op *o)
{
	for (int64_t i = 0; i < o->n; i++)
		o->out[i] = at(o, 1, i) + at(o, 0, i);
}

static void silu_mul(struct op *o)
{
	for (int64_t i = 0; i < o->n; i++) {
		double v = at(o, 0, i), e = exp(-fabs(v));
		double sigmoid = v >= 0 ? 1 / (1 + e) : e / (1 + e);
		o->out[i] = v * sigmoid * at(o, 1, i);
	}
}

static const struct {
	const char *op_type, *name; /* either may be NULL: any */
	int inputs;                 /* scalars included */
	void (*run)(struct op *o);
} OPS[] = {
	{"gemm", NULL, 2, gemm},
	{"softmax", NULL, 1, softmax},
	{"transpose", NULL, 1, transpose},
	{NULL, "rmsnorm", 3, rmsnorm},
	{NULL, "vector_add", 2, vector_add},
	{NULL, "silu_mul", 2, silu_mul},
};

int hostref_run(const struct spec *s, const struct axes *a, const void *const *in,
		const double *scalar, double *out)
{
	struct op o = {.s = s, .in = in, .scalar = scalar, .out = out};
	int64_t n;

	if (s->noutputs != 1 || !dtype_is_float(s->output[0].dtype))
		return 0;
	for (int i = 0; i < s->ninputs; i++)
		if (spec_shape(s, &s->input[i], a, o.d[i], &n, NULL) < 0)
			return 0;
	if (spec_shape(s, &s->output[0], a, NULL, &o.n, NULL) < 0)
		return 0;
	for (size_t i = 0; i < sizeof OPS / sizeof OPS[0]; i++) {
		if (OPS[i].inputs != s->ninputs || (OPS[i].op_type && strcmp(OPS[i].op_type, s->op_type)) ||
		    (OPS[i].name && strcmp(OPS[i].name, s->name)))
			continue;
		OPS[i].run(&o);
		return 1;
	}
	return 0;
}
