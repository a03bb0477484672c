/*
 * plan_config.c - the space of tunables of a plan and its macros.
 *
 * SPDX-License-Identifier: MIT
 */
#include "plan_parse.h"

#include <stdlib.h>
#include <string.h>

void plan_config_current(const struct plan *p, struct plan_config *c)
{
	*c = (struct plan_config){.n = p->ntunables};
	for (int i = 0; i < p->ntunables; i++)
		c->v[i] = p->tunable[i].current;
}

int plan_config_for(const struct plan *p, const struct spec *s, const struct axes *a, const struct facts *f,
		    struct plan_config *c, struct err *e)
{
	struct plan_env env = {.plan = p, .spec = s, .axes = a, .facts = f};
	plan_config_current(p, c);
	for (int i = 0; i < p->ntunables && !f->one_config; i++) {
		const struct plan_tunable *t = &p->tunable[i];
		for (int k = 0; k < t->nchoose; k++) {
			int64_t holds;
			if (plan_eval(&env, t->choose[k].when, 0, &holds, e))
				return -1;
			if (holds) {
				c->v[i] = t->choose[k].value;
				break;
			}
		}
	}
	return 0;
}

int plan_config_equal(const struct plan_config *a, const struct plan_config *b)
{
	return a->n == b->n && !memcmp(a->v, b->v, (size_t)a->n * sizeof a->v[0]);
}

static int value_index(const struct plan_tunable *t, int64_t v)
{
	for (int i = 0; i < t->nvalues; i++)
		if (t->value[i] == v)
			return i;
	return -1;
}

int plan_config_set(struct plan *p, const struct plan_config *c, struct err *e)
{
	if (c->n != p->ntunables)
		return err_set(e, EX_BADINPUT, "%s: tunables: %d values for %d tunables", p->file, c->n,
			       p->ntunables);
	for (int i = 0; i < c->n; i++)
		if (value_index(&p->tunable[i], c->v[i]) < 0)
			return err_set(e, EX_BADINPUT, "%s: tunables.%s: %lld is not one of the values", p->file,
				       p->tunable[i].name, (long long)c->v[i]);
	for (int i = 0; i < c->n; i++) {
		struct plan_tunable *t = &p->tunable[i];
		t->current = c->v[i];
		for (int k = 0; k < t->nchoose; k++)
			expr_free(t->choose[k].when);
		t->nchoose = 0;
	}
	return 0;
}

int plan_choose_add(struct plan *p, const char *tunable, const char *when, int64_t value, struct err *e)
{
	int i = plan_tunable_find(p, tunable);
	if (i < 0)
		return err_set(e, EX_BADINPUT, "%s: tunables: no tunable is named '%.64s'", p->file, tunable);
	struct plan_tunable *t = &p->tunable[i];
	if (value_index(t, value) < 0)
		return err_set(e, EX_BADINPUT, "%s: tunables.%s: %lld is not one of the values", p->file, t->name,
			       (long long)value);
	if (t->nchoose == PLAN_MAX_CHOOSE)
		return err_set(e, EX_BADINPUT, "%s: tunables.%s.choose: at most %d entries", p->file, t->name,
			       PLAN_MAX_CHOOSE);
	char *path = xasprintf("tunables.%s.choose[%d].when", t->name, t->nchoose);
	struct expr *x = expr_parse(when, p->file, path, e);
	free(path);
	if (!x)
		return -1;
	t->choose[t->nchoose++] = (struct plan_choose){x, value};
	return 0;
}

/* Every condition in `choose`, once each by its text. */
static int list_whens(const struct plan *p, const char *when[PLAN_MAX_WHENS], struct err *e)
{
	int n = 0;
	for (int i = 0; i < p->ntunables; i++) {
		for (int k = 0; k < p->tunable[i].nchoose; k++) {
			const char *text = expr_text(p->tunable[i].choose[k].when);
			int j = 0;
			while (j < n && strcmp(when[j], text))
				j++;
			if (j < n)
				continue;
			if (n == PLAN_MAX_WHENS)
				return err_set(e, EX_BADINPUT, "%s: tunables: more than %d different conditions in "
					       "choose", p->file, PLAN_MAX_WHENS);
			when[n++] = text;
		}
	}
	return n;
}

/* The configuration when the conditions hold whose bit is set. */
static void config_where(const struct plan *p, const char *const *when, int n, unsigned holds,
			 struct plan_config *c)
{
	plan_config_current(p, c);
	for (int i = 0; i < p->ntunables; i++) {
		const struct plan_tunable *t = &p->tunable[i];
		for (int k = 0, done = 0; k < t->nchoose && !done; k++) {
			for (int j = 0; j < n && !done; j++) {
				done = (holds >> j & 1) && !strcmp(when[j], expr_text(t->choose[k].when));
				if (done)
					c->v[i] = t->choose[k].value;
			}
		}
	}
}

/* All outcomes of the conditions are looked at, possible or not: what they mean is not known here. */
int plan_configs(const struct plan *p, struct plan_config out[PLAN_MAX_CONFIGS], int *n, struct err *e)
{
	const char *when[PLAN_MAX_WHENS];
	int whens = list_whens(p, when, e);
	*n = 0;
	if (whens < 0)
		return -1;
	for (unsigned holds = 0; holds < 1u << whens; holds++) {
		struct plan_config c;
		int k = 0;
		config_where(p, when, whens, holds, &c);
		while (k < *n && !plan_config_equal(&out[k], &c))
			k++;
		if (k < *n)
			continue;
		if (*n == PLAN_MAX_CONFIGS)
			return err_set(e, EX_BADINPUT, "%s: tunables: choose can lead to more than %d configurations, "
				       "each a compile of its own (give several tunables the same `when`)", p->file,
				       PLAN_MAX_CONFIGS);
		out[(*n)++] = c;
	}
	return 0;
}

int plan_space(const struct plan *p, int64_t *size, struct err *e)
{
	*size = 1;
	for (int i = 0; i < p->ntunables; i++)
		if (expr_mul(*size, p->tunable[i].nvalues, size) || *size > PLAN_MAX_SPACE)
			return err_set(e, EX_BADINPUT, "%s: tunables: more than %lld configurations", p->file,
				       PLAN_MAX_SPACE);
	return 0;
}

void plan_config_at(const struct plan *p, int64_t index, struct plan_config *c)
{
	*c = (struct plan_config){.n = p->ntunables};
	for (int i = p->ntunables - 1; i >= 0; i--) {
		const struct plan_tunable *t = &p->tunable[i];
		c->v[i] = t->value[index % t->nvalues];
		index /= t->nvalues;
	}
}

int64_t plan_config_index(const struct plan *p, const struct plan_config *c)
{
	int64_t index = 0;
	for (int i = 0; i < p->ntunables; i++) {
		int k = i < c->n ? value_index(&p->tunable[i], c->v[i]) : -1;
		if (k < 0 || expr_mul(index, p->tunable[i].nvalues, &index) || expr_add(index, k, &index))
			return -1;
	}
	return index;
}

/* A constraint that reads a var axis cannot be decided without a workload. */
static int needs_axes(const struct plan *p, const struct spec *s, const struct expr *x)
{
	const char *name;
	for (int i = 0; (name = expr_name_used(x, i)); i++) {
		int a = spec_axis_find(s, name);
		if (a >= 0 && !s->axis[a].is_const && plan_tunable_find(p, name) < 0)
			return 1;
	}
	return 0;
}

int plan_config_legal(const struct plan *p, const struct spec *s, const struct axes *a, const struct facts *f,
		      const struct plan_config *c, int *legal, struct err *e)
{
	struct plan_env env = {.plan = p, .spec = s, .axes = a, .facts = f, .config = c};
	*legal = 1;
	for (int i = 0; i < p->nconstraints && *legal; i++) {
		int64_t holds;
		if (!a && needs_axes(p, s, p->constraint[i]))
			continue;
		if (plan_eval(&env, p->constraint[i], 0, &holds, e))
			return -1;
		*legal = holds != 0;
	}
	return 0;
}

char **plan_macros(const struct plan *p, const struct spec *s, const struct plan_config *c)
{
	char **m = xcalloc((size_t)(p->ntunables + s->naxes + 1), sizeof *m);
	int n = 0;
	for (int i = 0; i < p->ntunables; i++)
		m[n++] = xasprintf("%s=%lld", p->tunable[i].name, (long long)c->v[i]);
	for (int i = 0; i < s->naxes; i++)
		if (s->axis[i].is_const)
			m[n++] = xasprintf("AXIS_%s=%lld", s->axis[i].name, (long long)s->axis[i].value);
	return m;
}

void plan_macros_free(char **m)
{
	for (int i = 0; m && m[i]; i++)
		free(m[i]);
	free(m);
}
