/*
 * noise.h - the noise model of the Monte-Carlo tests: seeded, no global state.
 *
 * log t of a rep = log T + session offset + (candidate: -theta + arm-in-session offset)
 *                + drift + Gaussian core + occasional spike, then cut to the clock tick.
 * The five presets are those of the simulation in the measurement notes (L M S R T); six more are recorded.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_NOISE_H
#define TS_NOISE_H

#include <math.h>
#include <stdint.h>

struct noise_rng {
	uint64_t s;
	double spare;
	int has_spare;
};

/* SplitMix64, Steele, Lea & Flood 2014. */
static inline uint64_t noise_u64(struct noise_rng *r)
{
	uint64_t z = r->s += 0x9e3779b97f4a7c15u;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

static inline double noise_unit(struct noise_rng *r)
{
	return ((double)(noise_u64(r) >> 11) + 0.5) * 0x1p-53;
}

static inline double noise_normal(struct noise_rng *r)
{
	if (r->has_spare) {
		r->has_spare = 0;
		return r->spare;
	}
	double m = sqrt(-2 * log(noise_unit(r))), a = 2 * M_PI * noise_unit(r);
	r->spare = m * sin(a);
	r->has_spare = 1;
	return m * cos(a);
}

struct noise_model {
	const char *name;
	double ns;       /* time of a rep */
	double core;     /* sd of log time of a rep */
	double tau;      /* sd of the arm-in-session offset */
	double offset;   /* sd of the session offset, common to both arms */
	double slow;     /* common drift over a session, as a log */
	double mode;     /* share of reps in a second mode ... */
	double mode_up;  /* ... this much slower */
	double spike;    /* share of reps with an exponential spike of mean 30 % */
	double tick;     /* ns */
};

static const struct noise_model NOISE_MODELS[] = {
	{"L 100us", 100e3, .005, .0010, .005, 0, 0, 0, .01, 32},
	{"M 15us", 15e3, .025, .0025, .010, 0, 0, 0, .01, 500},
	{"S 5us", 5e3, .05, .0040, .015, 0, .25, .08, .01, 500},
	{"R drift", 15e3, .015, .0025, .010, .06, 0, 0, .01, 500},
	{"T layout", 15e3, .025, .0060, .010, 0, 0, 0, .01, 500},
};

/* What was recorded on an H200 (131 processes, A/A, one graph, shared buffers): core from the sd of 16-pair
 * blocks (x 4 / sqrt 2), tau at the upper end of its interval, ticks of 32 ns. The second last is a 4.2 us
 * kernel in windows of 16. */
static const struct noise_model NOISE_H200[] = {
	{"vadd 46us", 46.6e3, .0116, .0005, .002, .001, 0, 0, 0, 32},
	{"rms 20us", 19.7e3, .0238, .0002, .005, .001, 0, 0, 0, 32},
	{"gemm 127us", 127e3, .0071, .0001, .007, .001, 0, 0, 0, 32},
	{"triad215us", 215e3, .0034, .0001, .002, .001, 0, 0, 0, 32},
	{"ew x16", 36.1e3, .0365, .0018, .008, .001, 0, 0, 0, 32},
	{"ew 4us", 4.24e3, .0427, .0007, .032, .001, 0, 0, 0, 32},
};

/* One rep in ticks. `at` in [0,1) is its place in the session. */
static inline int64_t noise_rep(struct noise_rng *r, const struct noise_model *m, double log_shift,
				double at)
{
	double x = log(m->ns) + log_shift + m->slow * at + m->core * noise_normal(r);
	if (m->mode > 0 && noise_unit(r) < m->mode)
		x += log1p(m->mode_up);
	double ns = exp(x);
	if (noise_unit(r) < m->spike)
		ns += m->ns * 0.3 * -log(noise_unit(r));
	return (int64_t)(ns / m->tick + noise_unit(r)); /* random phase */
}

#endif
