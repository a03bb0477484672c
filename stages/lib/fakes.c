/*
 * fakes.c - see fakes.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fakes.h"
#include "dtype.h"

#include <math.h>
#include <string.h>

static uint8_t *got(const struct fake *f, const struct mem_buf *b)
{
	return f->rw + b->offset;
}

static size_t count(const struct mem_buf *b)
{
	return b->bytes / dtype_size((enum dtype)b->dtype);
}

static void fill_value(const struct fake *f, const struct mem_buf *b, double v)
{
	for (size_t i = 0; i < count(b); i++)
		dtype_store((enum dtype)b->dtype, got(f, b), i, v);
}

static void fake_zeros(const struct fake *f, const struct mem_buf *b)
{
	memset(got(f, b), 0, b->bytes);
}

static void fake_one(const struct fake *f, const struct mem_buf *b)
{
	fill_value(f, b, 1);
}

static void fake_mean(const struct fake *f, const struct mem_buf *b)
{
	double sum = 0;

	for (size_t i = 0; i < count(b); i++)
		sum += dtype_load((enum dtype)b->dtype, f->honest + b->offset, i);
	fill_value(f, b, sum / (double)count(b));
}

void fake_copy(const struct fake *f, const struct mem_buf *b)
{
	const struct mem_buf *in = mem_find(f->layout, MEM_INPUT, f->input);
	size_t n = in ? count(in) : 0;

	for (size_t i = 0; i < count(b) && n; i++)
		dtype_store((enum dtype)b->dtype, got(f, b), i,
			    dtype_load((enum dtype)in->dtype, f->in + in->offset, i % n));
}

void fake_stale(const struct fake *f, const struct mem_buf *b)
{
	memcpy(got(f, b), f->stale + b->offset, b->bytes);
}

static void fake_half(const struct fake *f, const struct mem_buf *b)
{
	size_t n = count(b) / 2 * dtype_size((enum dtype)b->dtype);

	memcpy(got(f, b), f->honest + b->offset, n); /* the rest stays poison */
}

static void fake_half_zero(const struct fake *f, const struct mem_buf *b)
{
	size_t n = count(b) / 2 * dtype_size((enum dtype)b->dtype);

	memcpy(got(f, b), f->honest + b->offset, n);
	memset(got(f, b) + n, 0, b->bytes - n);
}

static void fake_nan(const struct fake *f, const struct mem_buf *b)
{
	memcpy(got(f, b), f->honest + b->offset, b->bytes);
	dtype_store((enum dtype)b->dtype, got(f, b), count(b) / 3, NAN);
}

static void fake_inf(const struct fake *f, const struct mem_buf *b)
{
	memcpy(got(f, b), f->honest + b->offset, b->bytes);
	dtype_store((enum dtype)b->dtype, got(f, b), count(b) / 3, INFINITY);
}

/* Half the significant bits: float16 for float32, five bits for 16-bit floats. */
static void fake_coarse(const struct fake *f, const struct mem_buf *b)
{
	int m = dtype_mantissa((enum dtype)b->dtype), keep = m >= 24 ? 11 : m - 3;

	for (size_t i = 0; i < count(b); i++) {
		int x;
		double v = frexp(dtype_load((enum dtype)b->dtype, f->honest + b->offset, i), &x);
		v = ldexp(nearbyint(ldexp(v, keep)), x - keep);
		dtype_store((enum dtype)b->dtype, got(f, b), i, v);
	}
}

void fake_double(const struct fake *f, const struct mem_buf *b)
{
	for (size_t i = 0; i < count(b); i++) {
		double v;
		memcpy(&v, f->stale + 8 * i, sizeof v);
		dtype_store((enum dtype)b->dtype, got(f, b), i, v);
	}
}

const struct fake_kind FAKES[] = {
	{"zeros", fake_zeros, 0},       {"ones", fake_one, 0},
	{"the mean everywhere", fake_mean, 1}, {"half the rows, rest unwritten", fake_half, 0},
	{"half the rows, rest zero", fake_half_zero, 0}, {"one NaN", fake_nan, 1},
	{"one infinity", fake_inf, 1},  {"half the precision", fake_coarse, 1},
	{NULL, NULL, 0},
};
