/*
 * tune_choose.c - which configurations are tried. See tune_part.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tune_part.h"

#include "rng.h"
#include "sweep.h"

#include <stdio.h>
#include <string.h>

static int legal(struct tune *t, const struct plan_config *c)
{
	int ok = 0;

	for (int i = 0; i < t->spec->npublic; i++) {
		const struct axes *a = t->facts.class == DEVICE_CUDA ? &t->spec->public[i].gpu
								     : &t->spec->public[i].emu;
		if (plan_config_legal(t->plan, t->spec, a, &t->facts, c, &ok, NULL) < 0 || !ok)
			return 0;
	}
	return 1;
}

static int known(const struct tune *t, const struct plan_config *c)
{
	for (int i = 0; i < t->n; i++)
		if (plan_config_equal(&t->entry[i].config, c))
			return 1;
	return 0;
}

static int add(struct tune *t, const struct plan_config *c, int own, struct err *e)
{
	struct tune_entry *x = &t->entry[t->n];
	struct plan *p;

	if (plan_parse(buf_str(&t->plan_text), t->plan_text.len, "plan.json", &p, e) < 0)
		return -1;
	int rc = plan_config_set(p, c, e);
	if (rc == 0) {
		x->config = *c;
		/* A GPU builds what a `choose` asks for: then the proposal is more than its values. */
		if (t->on_gpu && own)
			buf_add(&x->plan, t->plan_text.data, t->plan_text.len);
		else
			sweep_plan_text(p, &x->plan);
		t->n++;
	}
	plan_free(p);
	return rc;
}

/* The proposed one, then a walk through the space in an order of the run's SEED and this trial. */
int tune_choose(struct tune *t, struct err *e)
{
	int64_t size, budget = run_int(&t->s->run, "tune", 8);
	struct plan_config c;
	struct rng r;
	uint8_t seed[32];
	char text[64];

	if (budget > TUNE_CONFIGS)
		budget = TUNE_CONFIGS;
	t->entry = xcalloc((size_t)TUNE_CONFIGS + 2, sizeof *t->entry);
	plan_config_current(t->plan, &c);
	if (legal(t, &c) && add(t, &c, 1, e) < 0)
		return -1;
	t->own = t->n ? 0 : -1;
	if (plan_space(t->plan, &size, e) < 0)
		return 0; /* too large to number: the proposed one only */
	snprintf(text, sizeof text, "tune:%lld:%s", (long long)t->s->run.seed, t->s->id);
	hash_bytes(text, strlen(text), seed);
	rng_open(&r, seed, "order");
	int64_t looks = size <= 512 ? size : 512, start = (int64_t)rng_below(&r, (uint64_t)size);
	for (int64_t i = 0; i < looks && t->n < budget; i++) {
		/* A small space is walked whole, a large one is sampled. */
		int64_t k = size <= 512 ? (start + i * (size > 2 && size % 7 ? 7 : 1)) % size
					: (int64_t)rng_below(&r, (uint64_t)size);
		plan_config_at(t->plan, k, &c);
		if (!known(t, &c) && legal(t, &c) && add(t, &c, 0, e) < 0) {
			rng_close(&r);
			return -1;
		}
	}
	rng_close(&r);
	return 0;
}
