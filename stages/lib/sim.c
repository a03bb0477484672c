/*
 * sim.c - see sim.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "sim.h"

#include "hash.h"

#include <math.h>
#include <string.h>

/* The finaliser of SplitMix64 (Steele, Lea & Flood 2014). */
static uint64_t mix(uint64_t z)
{
	z += 0x9e3779b97f4a7c15u;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

static double unit(uint64_t word) /* (0,1) */
{
	return ((double)(word >> 11) + 0.5) * 0x1p-53;
}

static double normal(uint64_t word)
{
	return sqrt(-2 * log(unit(mix(word)))) * cos(2 * M_PI * unit(mix(word + 1)));
}

static uint64_t seed_of(const char *a, const char *b)
{
	struct buf text = BUF_INIT;
	uint8_t digest[32];
	uint64_t word;
	buf_addf(&text, "touchstone/sim/1:%s:%s", a, b);
	hash_bytes(text.data, text.len, digest);
	buf_free(&text);
	memcpy(&word, digest, sizeof word);
	return word;
}

/* Distance of each tunable from its optimum, by position in its list of values: lists are mostly
 * powers of two, so position is the natural scale. */
static double tuned_shape(const struct spec *spec, const struct plan *plan,
			  const struct plan_config *c)
{
	double shape = 0, sum = 0;
	for (int i = 0; i < plan->ntunables; i++) {
		const struct plan_tunable *t = &plan->tunable[i];
		int at = 0;
		while (at < t->nvalues - 1 && t->value[at] != c->v[i])
			at++;
		double x = t->nvalues > 1 ? (double)at / (t->nvalues - 1) : 0;
		uint64_t s = seed_of(spec->name, t->name);
		double away = x - (0.2 + 0.6 * unit(mix(s)));
		shape += (0.2 + 0.5 * unit(mix(s + 1))) * away * away;
		sum += (unit(mix(s + 2)) - 0.5) * away; /* tunables interact, mildly */
	}
	return shape + 0.2 * sum * sum;
}

int sim_open(struct sim *s, const struct spec *spec, const struct plan *plan,
	     const struct axes *axes, const char *key, struct err *e)
{
	struct facts facts;
	struct plan_config config;
	int64_t bytes = 0, flops = 0;
	if (facts_find("sim", &facts, e) != 0 ||
	    plan_config_for(plan, spec, axes, &facts, &config, e) != 0)
		return -1;
	if (spec_cost(spec, axes, &bytes, &flops, e) != 0)
		return -1;
	double ns = 2000 + (double)bytes / 3000 + (double)flops / 50000;
	double shape = plan->ntunables ? tuned_shape(spec, plan, &config)
				       : 0.5 + 0.2 * unit(mix(seed_of(spec->name, key)));
	s->true_ns = ns * exp(shape);
	s->stream = seed_of("noise", key);
	return 0;
}

int64_t sim_ns(const struct sim *s, uint64_t session, uint64_t rep)
{
	uint64_t in_session = mix(s->stream ^ mix(session));
	double x = SIM_SESSION_SD * normal(in_session) + SIM_REP_SD * normal(mix(in_session ^ mix(rep)));
	double ns = s->true_ns * exp(x);
	return ns < 1 ? 1 : (int64_t)ns;
}
