/*
 * image_fits.c - see image.h: images for a GPU against their plan, at every size known before a draw.
 *
 * SPDX-License-Identifier: MIT
 */
#include "image.h"

#include "cubin.h"
#include "file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MODULE_MAX = 64 << 20 };

struct check {
	const struct image *m;
	const struct spec *s;
	const struct facts *f;
	struct cubin *cubin; /* one an image */
	char *code, *text;
};

static int no(struct check *c, const char *code, const char *where, const char *why)
{
	snprintf(c->code, 48, "%s", code);
	snprintf(c->text, 256, "%.200s (at %.48s)", why, where);
	return 1;
}

static int shared_fits(struct check *c, const struct cubin *k, const struct launches *l, const char *where)
{
	for (int i = 0; i < l->n; i++) {
		const struct cubin_entry *x = cubin_find(k, l->launch[i].entry);
		int64_t fixed = x ? x->shared : 0, most = l->launch[i].shared;
		char why[256];
		if (fixed + most <= c->f->max_shared)
			continue;
		snprintf(why, sizeof why,
			 "launch %d: '%.48s' has %lld bytes of static and %lld of dynamic shared memory, "
			 "a block may have %lld",
			 i, l->launch[i].entry, (long long)fixed, (long long)most,
			 (long long)c->f->max_shared);
		return no(c, "guard.limits", where, why);
	}
	return 0;
}

/* Now with the registers that the compiler took. */
static int at_size(struct check *c, const struct axes *a, const char *where, struct err *e)
{
	struct facts f = *c->f;
	struct launches l;
	struct err why = {0};
	char text[256];
	int k = image_pick(&c->m->set, c->m->plan, c->s, a, c->f, e);
	if (k < 0)
		return -1;
	cubin_facts(&c->cubin[k], &f);
	if (image_pick(&c->m->set, c->m->plan, c->s, a, &f, &why) != k)
		return no(c, "guard.plan", where,
			  "tunables: a choice may not depend on the occupancy of what it chooses");
	if (plan_resolve(c->m->plan, c->s, a, &f, 0, &l, &why))
		return no(c, "guard.limits", where, why.text);
	int rc = 0;
	if (cubin_args(&c->cubin[k], &l, text))
		rc = no(c, "guard.entry_signature", where, text);
	else
		rc = shared_fits(c, &c->cubin[k], &l, where);
	launches_free(&l);
	return rc;
}

static int all_sizes(struct check *c, struct err *e)
{
	const struct spec *s = c->s;
	struct axes a;
	int rc = 0;
	for (int i = 0; i < s->npublic + s->ntiny && rc == 0; i++) {
		const struct spec_workload *w = i < s->npublic ? &s->public[i] : &s->tiny[i - s->npublic];
		rc = at_size(c, &w->gpu, w->name, e);
	}
	for (int k = 0, found; rc == 0 && (found = spec_edge(s, 0, k, &a)) >= 0; k++)
		if (found)
			rc = at_size(c, &a, "the least or greatest sizes that may be drawn", e);
	return rc;
}

int image_fits(const struct image *m, const struct spec *s, const struct facts *f, char code[48],
	       char text[256], struct err *e)
{
	struct check c = {m, s, f, xcalloc((size_t)m->set.n + 1, sizeof *c.cubin), code, text};
	int rc = 0;
	for (int k = 0; k < m->set.n && rc == 0; k++) {
		struct buf data = BUF_INIT;
		rc = file_read(m->set.path[k], MODULE_MAX, &data, e);
		if (rc == 0)
			rc = cubin_parse(data.data, data.len, &c.cubin[k], e);
		buf_free(&data);
	}
	if (rc == 0)
		rc = all_sizes(&c, e);
	free(c.cubin);
	return rc;
}
