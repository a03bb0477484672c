/*
 * plateau.c - see plateau.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "plateau.h"

#include "json.h"

#include <stdio.h>
#include <string.h>

enum { MOST = 1000000 };

static int can_widen(const char *kind)
{
	return strcmp(kind, "openai") == 0 || strcmp(kind, "command") == 0;
}

static int rule(const struct run *run)
{
	int64_t k = run_int(run, "plateau", 0);

	return k > 0 && k <= MOST ? (int)k : 0;
}

/* Of another run: this one has tried nothing yet. */
static int dry(const struct run *run, const cJSON *after)
{
	const cJSON *p = json_get(after, "plateau");
	double n = json_get_num(p, "dry", 0);

	return strcmp(json_get_str(p, "run", ""), run->name) == 0 && n > 0 && n <= MOST ? (int)n : 0;
}

struct plateau plateau_of(const struct run *run, const cJSON *after, const char *kind)
{
	struct plateau p = {.k = rule(run)};

	if (!p.k)
		return p;
	p.dry = dry(run, after);
	p.stop = p.dry >= (can_widen(kind) ? 2 * p.k : p.k);
	p.widen = !p.stop && p.dry >= p.k ? p.dry - p.k + 1 : 0;
	return p;
}

int plateau_other_parent(const struct plateau *p)
{
	return p->widen && p->widen % 2 == 0;
}

void plateau_words(const struct plateau *p, char *out, size_t size)
{
	snprintf(out, size, "plateau: %d trials in a row were not kept%s (PLATEAU=%d)", p->dry,
		 p->dry >= 2 * p->k ? ", the second half of them widened" : ", and this proposer cannot be widened", p->k);
}

void plateau_put(struct jsonw *w, const struct run *run, const cJSON *after, int charged, int kept)
{
	if (!rule(run))
		return;
	jw_obj(w, "plateau");
	jw_str(w, "run", run->name);
	jw_int(w, "dry", kept ? 0 : dry(run, after) + (charged != 0));
	jw_end(w);
}

void plateau_tell(struct jsonw *w, const struct plateau *p)
{
	if (!p->widen && !p->stop)
		return;
	jw_obj(w, "plateau");
	jw_int(w, "dry", p->dry);
	jw_str(w, "state", p->stop ? "stopped" : "widened");
	jw_end(w);
}
