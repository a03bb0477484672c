/*
 * worker_wire.c - the launches of a plan as bytes. See worker_wire.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "worker_wire.h"

#include <stdlib.h>
#include <string.h>

enum { LAUNCHES_MOST = 1 << 20 };

void wire_launches_put(struct buf *b, const struct launches *l)
{
	buf_add(b, &l->nworkspaces, sizeof l->nworkspaces);
	buf_add(b, l->workspace, sizeof l->workspace);
	buf_add(b, &l->n, sizeof l->n);
	for (int i = 0; i < l->n; i++) {
		struct launch flat = l->launch[i];
		flat.arg = NULL;
		buf_add(b, &flat, sizeof flat);
		buf_add(b, l->launch[i].arg, (size_t)flat.nargs * sizeof *flat.arg);
	}
}

struct reader {
	const uint8_t *p;
	size_t left;
};

static int take(struct reader *r, void *to, size_t n)
{
	if (n > r->left)
		return -1;
	if (n)
		memcpy(to, r->p, n);
	r->p += n;
	r->left -= n;
	return 0;
}

static int launch_get(struct reader *r, struct launch *l)
{
	l->arg = NULL;
	if (take(r, l, sizeof *l)) {
		l->arg = NULL;
		return -1;
	}
	l->arg = NULL;
	l->entry[sizeof l->entry - 1] = 0;
	if (l->nargs < 0 || l->nargs > PLAN_MAX_ARGS)
		return -1;
	l->arg = xcalloc((size_t)l->nargs + 1, sizeof *l->arg);
	if (take(r, l->arg, (size_t)l->nargs * sizeof *l->arg))
		return -1;
	for (int i = 0; i < l->nargs; i++)
		if (l->arg[i].n < 0 || (size_t)l->arg[i].n > sizeof l->arg[i].data)
			return -1;
	return 0;
}

int wire_launches_get(const void *data, size_t len, struct launches *l, struct err *e)
{
	struct reader r = {data, len};
	int n = 0;

	memset(l, 0, sizeof *l);
	int bad = take(&r, &l->nworkspaces, sizeof l->nworkspaces) ||
		  take(&r, l->workspace, sizeof l->workspace) || take(&r, &n, sizeof n) ||
		  l->nworkspaces < 0 || l->nworkspaces > PLAN_MAX_WORKSPACES || n < 0 || n > LAUNCHES_MOST ||
		  (size_t)n > r.left / sizeof *l->launch;
	for (int i = 0; i < PLAN_MAX_WORKSPACES; i++)
		l->workspace[i].name[sizeof l->workspace[i].name - 1] = 0;
	if (!bad)
		l->launch = xcalloc((size_t)n + 1, sizeof *l->launch);
	for (int i = 0; i < n && !bad; i++) {
		l->n = i + 1;
		bad = launch_get(&r, &l->launch[i]);
	}
	if (!bad && r.left == 0)
		return 0;
	launches_free(l);
	return err_set(e, EX_HARNESS, "malformed launches");
}
