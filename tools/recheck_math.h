/*
 * recheck_math.h - the statistics of bench, written a second time for tools/recheck.c alone.
 *
 * Other algorithms on purpose: insertion sort, sums in long double, the finite series of the t
 * distribution, the Bayes factor as a ratio of densities. Shares nothing with stages/lib/stats.c.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_RECHECK_MATH_H
#define TS_RECHECK_MATH_H

#include "hash.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { MAXB = 128, MAXC = 64 * MAXB }; /* blocks of a workload, reps of an arm */

static uint64_t little(const unsigned char *p, int n)
{
	return n ? little(p + 1, n - 1) * 256 + *p : 0;
}

static void order(double *x, int n)
{
	for (int i = 1; i < n; i++)
		for (int j = i; j > 0 && x[j] < x[j - 1]; j--) {
			double t = x[j];
			x[j] = x[j - 1];
			x[j - 1] = t;
		}
}

static double average(const double *x, int from, int to)
{
	long double s = 0;
	for (int i = from; i < to; i++)
		s += x[i];
	return (double)(s / (to - from));
}

static double spread(const double *x, int n)
{
	long double s = 0, m = average(x, 0, n);
	for (int i = 0; i < n; i++)
		s += (x[i] - m) * (x[i] - m);
	return n > 1 ? (double)sqrtl(s / (n - 1)) : 0;
}

static double middle(const double *x, int n)
{
	static double y[MAXC];
	order(memcpy(y, x, (size_t)n * sizeof *y), n);
	return (y[(n - 1) / 2] + y[n / 2]) / 2;
}

/* Share of those that are over twice the median. */
static double beyond(const double *x, int n)
{
	double mid = middle(x, n), over = 0;
	for (int i = 0; i < n; i++)
		over += x[i] > 2 * mid;
	return over / n;
}

static double trimmed(const double *x, int n, double trim, double *se)
{
	double y[MAXB];
	order(memcpy(y, x, (size_t)n * sizeof *y), n);
	int c = (int)(trim * n);
	double m = average(y, c, n - c);
	for (int i = 0; i < c; i++) {
		y[i] = y[c];
		y[n - 1 - i] = y[n - 1 - c];
	}
	*se = n > 1 ? spread(y, n) * sqrt(n) / (n - 2 * c) : HUGE_VAL;
	return m;
}

/* P(|T| <= t) for whole nu: the finite series of Abramowitz & Stegun 26.7.3 and 26.7.4. */
static double t_inside(double t, int nu)
{
	double a = atan(t / sqrt(nu)), c = cos(a), term = nu % 2 ? c : 1, sum = 0;
	for (int k = nu % 2 ? 1 : 0; k <= nu - 2; k += 2) {
		sum += term;
		term *= c * c * (k + 1) / (k + 2);
	}
	return nu % 2 ? (a + sin(a) * sum) * 2 / M_PI : sin(a) * sum;
}

static double t_value(double p, int nu)
{
	double lo = 0, hi = 1e6;
	for (int i = 0; i < 200; i++) {
		double m = (lo + hi) / 2;
		*(t_inside(m, nu) < 2 * p - 1 ? &lo : &hi) = m;
	}
	return lo;
}

/* Ratio of two t densities, the mixture's over the null's. */
static double bayes(double t, int k, double g)
{
	double wide = sqrt(1 + k * g), nu = k - 1;
	double null = pow(1 + t * t / nu, -(nu + 1) / 2);
	double mix = pow(1 + t * t / (nu * wide * wide), -(nu + 1) / 2) / wide;
	return isinf(t) ? pow(1 + k * g, nu / 2) : mix / null;
}

static uint64_t draw(const char *seed, const char *what, int a, int b, int c, int d)
{
	char text[160];
	uint8_t h[32];
	int n = snprintf(text, sizeof text, "%s:%s:%d:%d:%d:%d", seed, what, a, b, c, d);
	hash_bytes(text, (size_t)n, h);
	return little(h, 8);
}

/* Its last session ended with a dead arm or a spoilt machine: no ticks show that, the code says it. */
static const char *ended(const char *code)
{
	static const char *const lost[] = {".fault", ".timeout", ".protocol", ".late_work"};
	const char *dot = strchr(code, '.');
	for (size_t i = 0; dot && i < sizeof lost / sizeof *lost; i++)
		if (strcmp(dot, lost[i]) == 0)
			return "reject";
	return dot && (strcmp(dot, ".rival") == 0 || strcmp(dot, ".invalid_env") == 0) ? "invalid" : NULL;
}

#endif
