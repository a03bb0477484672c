/*
 * plan_sizes.c - a plan at every size that is known before a draw: public and tiny workloads, and
 * the edges of the held-out ranges. What is drawn from the key lies between them and stays secret.
 *
 * SPDX-License-Identifier: MIT
 */
#include "plan.h"

#include <stdio.h>

struct at {
	const struct plan *p;
	const struct spec *s;
	const struct facts *f;
	int reference;
	struct plan_sizes *out;
	struct err *e;
};

static int legal_at(struct at *t, const struct axes *a, const char *where)
{
	struct plan_config c;
	int legal;
	if (plan_config_for(t->p, t->s, a, t->f, &c, t->e) ||
	    plan_config_legal(t->p, t->s, a, t->f, &c, &legal, t->e))
		return -1;
	return legal ? 0 : err_set(t->e, EX_BADINPUT, "%s: constraints: the chosen tunables break one at %s",
				   t->p->file, where);
}

static int resolve_at(struct at *t, const struct axes *a, const char *where, int64_t *launches)
{
	struct launches l;
	struct err why;
	if (legal_at(t, a, where))
		return -1;
	if (plan_resolve(t->p, t->s, a, t->f, t->reference, &l, &why))
		return err_set(t->e, EX_BADINPUT, "%.300s (at %s)", why.text, where);
	*launches = l.n;
	launches_shared(&l, t->p, t->out->shared);
	launches_free(&l);
	return 0;
}

int plan_sizes(const struct plan *p, const struct spec *s, const struct facts *f, int reference,
	       struct plan_sizes *out, struct err *e)
{
	struct at t = {p, s, f, reference, out, e};
	int emu = f->class != DEVICE_CUDA, n = s->npublic + s->ntiny;
	*out = (struct plan_sizes){0};
	for (int i = 0; i < n; i++) {
		const struct spec_workload *k = i < s->npublic ? &s->public[i] : &s->tiny[i - s->npublic];
		char where[96];
		snprintf(where, sizeof where, "workload %s", k->name);
		if (resolve_at(&t, emu ? &k->emu : &k->gpu, where, &out->launches[i]))
			return -1;
		out->n++;
	}
	struct axes a;
	int64_t launches;
	for (int k = 0, found; (found = spec_edge(s, emu, k, &a)) >= 0; k++) {
		if (found && resolve_at(&t, &a, "the least or greatest sizes that may be drawn", &launches))
			return -1;
		out->edges += found;
	}
	return 0;
}
