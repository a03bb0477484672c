/*
 * graph.c - lists of operations, and graphs of the fake driver: a graph is such a list.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fake.h"

#include <stdlib.h>
#include <string.h>

int fake_ops_add(struct fake_ops *l, const struct fake_op *op)
{
	if (l->n == l->room) {
		size_t room = l->room ? 2 * l->room : 4;
		struct fake_op *p = realloc(l->op, room * sizeof *p);
		if (!p)
			return CUDA_OUT_OF_MEMORY;
		l->op = p;
		l->room = room;
	}
	l->op[l->n++] = *op;
	return 0;
}

void fake_op_free(struct fake_op *op)
{
	free(op->args);
	free(op->staged);
	op->args = NULL;
	op->staged = NULL;
}

void fake_ops_free(struct fake_ops *l)
{
	for (size_t i = 0; i < l->n; i++)
		fake_op_free(&l->op[i]);
	free(l->op);
	*l = (struct fake_ops){0};
}

/* Room for the pointers and, aligned for tensor maps, what they point at. */
int fake_op_copy(struct fake_op *to, const struct fake_op *from)
{
	*to = *from;
	to->args = NULL;
	to->staged = NULL;
	if (from->kind != FAKE_KERNEL)
		return 0;
	const struct CUfunc_st *f = from->func;
	size_t at = ((size_t)FAKE_PARAMS * sizeof(void *) + 63) & ~(size_t)63, bytes = at;
	for (int i = 0; i < f->nparams; i++)
		bytes += ((size_t)f->param[i].size + 63) & ~(size_t)63;
	to->args = aligned_alloc(64, bytes);
	if (!to->args)
		return CUDA_OUT_OF_MEMORY;
	for (int i = 0; i < f->nparams; i++) {
		to->args[i] = (char *)to->args + at;
		memcpy(to->args[i], from->args[i], f->param[i].size);
		at += ((size_t)f->param[i].size + 63) & ~(size_t)63;
	}
	return 0;
}

static int list_copy(struct fake_ops *to, const struct fake_ops *from)
{
	*to = (struct fake_ops){0};
	for (size_t i = 0; i < from->n; i++) {
		struct fake_op op;
		int r = fake_op_copy(&op, &from->op[i]);
		if (!r)
			r = fake_ops_add(to, &op);
		if (r) {
			fake_ops_free(to);
			return r;
		}
	}
	return 0;
}

CUresult cuGraphDestroy(CUgraph g)
{
	if (!g)
		return CUDA_INVALID_VALUE;
	fake_ops_free(&g->ops);
	free(g);
	return 0;
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *out, CUgraph g, unsigned long long flags)
{
	int r = fake_ready();
	if (r || !g || flags)
		return r ? r : CUDA_INVALID_VALUE;
	*out = calloc(1, sizeof **out);
	if (!*out)
		return CUDA_OUT_OF_MEMORY;
	r = list_copy(&(*out)->ops, &g->ops);
	if (r)
		free(*out);
	return r;
}

CUresult cuGraphExecUpdate_v2(CUgraphExec x, CUgraph g, CUgraphUpdate *why)
{
	struct fake_ops now;
	int r = fake_ready();
	if (r || !x || !g)
		return r ? r : CUDA_INVALID_VALUE;
	*why = (CUgraphUpdate){0};
	if (x->ops.n != g->ops.n)
		why->result = 2; /* topology changed */
	for (size_t i = 0; !why->result && i < g->ops.n; i++) {
		const struct fake_op *a = &x->ops.op[i], *b = &g->ops.op[i];
		int sets = (a->kind == FAKE_SET8 || a->kind == FAKE_SET32) &&
			   (b->kind == FAKE_SET8 || b->kind == FAKE_SET32);
		if (a->kind != b->kind && !sets)
			why->result = 3; /* node type changed */
		else if (a->kind == FAKE_KERNEL && a->cooperative != b->cooperative)
			why->result = 8; /* attributes changed */
	}
	if (why->result)
		return FAKE_UPDATE_FAILED;
	r = list_copy(&now, &g->ops);
	if (r)
		return r;
	fake_ops_free(&x->ops);
	x->ops = now;
	return 0;
}

CUresult cuGraphExecDestroy(CUgraphExec x)
{
	if (!x)
		return CUDA_INVALID_VALUE;
	fake_ops_free(&x->ops);
	free(x);
	return 0;
}

/* A launch is a copy: what happens to the graph afterwards changes later launches only. */
CUresult cuGraphLaunch(CUgraphExec x, CUstream s)
{
	struct fake_ops now;
	int r = fake_ready();
	if (r || !x)
		return r ? r : CUDA_INVALID_VALUE;
	if (s && s->capture)
		return FAKE_CAPTURE_UNSUPPORTED; /* child graphs: nobody needs them */
	for (size_t i = 0; i < x->ops.n; i++)
		if (x->ops.op[i].kind == FAKE_EVENT)
			x->ops.op[i].event->done = 0;
	r = list_copy(&now, &x->ops);
	if (r)
		return r;
	size_t n = now.n;
	uint64_t seq = fake_submit(&now);
	if (s)
		s->seq = seq;
	for (size_t i = 0; i < n; i++)
		if (x->ops.op[i].kind == FAKE_EVENT)
			x->ops.op[i].event->seq = seq;
	return 0;
}
