/*
 * fill_structured.c - permutations, page tables, routing, offsets: inputs whose elements depend on each
 * other. See fill.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fill_part.h"
#include "buf.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void shuffle(struct rng *r, int64_t *v, size_t n)
{
	for (size_t i = n; i > 1; i--) {
		size_t k = (size_t)rng_below(r, i);
		int64_t x = v[i - 1];
		v[i - 1] = v[k];
		v[k] = x;
	}
}

static void fill_permutation(struct fill_job *j)
{
	int64_t *v = xmalloc(j->row * sizeof *v);

	for (size_t at = 0; at < j->n; at += j->row) {
		for (size_t i = 0; i < j->row; i++)
			v[i] = (int64_t)i;
		shuffle(&j->r, v, j->row);
		for (size_t i = 0; i < j->row; i++)
			dtype_store(j->dt, j->out, at + i, (double)v[i]);
	}
	free(v);
}

/* n distinct integers of [0, to). */
static int fill_pages(struct fill_job *j, struct err *e)
{
	if (j->to < (int64_t)j->n || j->to > 1 << 28)
		return err_set(e, EX_BADINPUT, "input '%s': %zu distinct pages out of %lld",
			       j->t->name, j->n, (long long)j->to);
	int64_t *v = xmalloc((size_t)j->to * sizeof *v + 1);
	for (int64_t i = 0; i < j->to; i++)
		v[i] = i;
	shuffle(&j->r, v, (size_t)j->to);
	for (size_t i = 0; i < j->n; i++)
		dtype_store(j->dt, j->out, i, (double)v[i]);
	free(v);
	return 0;
}

/* Each row: `row` distinct experts of `to`, drawn one after the other by Zipf weight. Which
 * expert is popular is itself random. */
static int fill_routing(struct fill_job *j, struct err *e)
{
	size_t experts = (size_t)j->to;

	if (j->to < (int64_t)j->row || j->to > 1 << 20)
		return err_set(e, EX_BADINPUT, "input '%s': %zu distinct experts out of %lld",
			       j->t->name, j->row, (long long)j->to);
	double *w = xmalloc(experts * sizeof *w), *left = xmalloc(experts * sizeof *w);
	int64_t *rank = xmalloc(experts * sizeof *rank);
	for (size_t i = 0; i < experts; i++)
		rank[i] = (int64_t)i;
	shuffle(&j->r, rank, experts);
	for (size_t i = 0; i < experts; i++)
		w[rank[i]] = pow((double)i + 1, -j->t->fill.skew);
	for (size_t at = 0; at < j->n; at += j->row) {
		double total = 0;
		memcpy(left, w, experts * sizeof *w);
		for (size_t i = 0; i < experts; i++)
			total += w[i];
		for (size_t i = 0; i < j->row; i++) {
			double x = rng_unit(&j->r) * total;
			size_t k = 0, last = 0;
			for (; k < experts; k++) {
				if (left[k] <= 0)
					continue;
				last = k;
				if (x < left[k])
					break;
				x -= left[k];
			}
			k = k < experts ? k : last;
			total -= left[k];
			left[k] = 0;
			dtype_store(j->dt, j->out, at + i, (double)k);
		}
	}
	free(w);
	free(left);
	free(rank);
	return 0;
}

static int cmp_int64(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

/* Offsets 0 = p[0] <= p[1] ... = to, each step at least `from`: sorted cuts of what is spare. */
static int fill_indptr(struct fill_job *j, struct err *e)
{
	int64_t steps = (int64_t)j->n - 1, spare = j->to - j->from * steps;

	if (steps < 0 || (steps == 0 && j->to != 0) || spare < 0)
		return err_set(e, EX_BADINPUT, "input '%s': no offsets with these steps", j->t->name);
	int64_t *v = xmalloc(j->n * sizeof *v);
	for (int64_t i = 0; i + 1 < steps; i++)
		v[i] = (int64_t)rng_below(&j->r, (uint64_t)spare + 1);
	if (steps > 1)
		qsort(v, (size_t)steps - 1, sizeof *v, cmp_int64);
	dtype_store(j->dt, j->out, 0, 0);
	for (int64_t i = 1; i <= steps; i++)
		dtype_store(j->dt, j->out, (size_t)i,
			    (double)(j->from * i + (i < steps ? v[i - 1] : spare)));
	free(v);
	return 0;
}

int fill_structured(struct fill_job *j, struct err *e)
{
	switch (j->t->fill.kind) {
	case FILL_PERMUTATION: fill_permutation(j); return 0;
	case FILL_PAGE_TABLE: return fill_pages(j, e);
	case FILL_SKEWED_ROUTING: return fill_routing(j, e);
	case FILL_INDPTR: return fill_indptr(j, e);
	default: return 0;
	}
}
