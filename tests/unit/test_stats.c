/*
 * test_stats.c - quantiles against published values, the Bayes factor against quadrature, the
 * decision rule against a seeded simulation. Writes nothing.
 *
 * SPDX-License-Identifier: MIT
 */
#include "../../stages/lib/stats.h"
#include "../bench/noise.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>

static void near(double got, double want, double tol)
{
	if (!(fabs(got - want) <= tol))
		fail_msg("got %.17g, want %.17g", got, want);
}

static void test_location_and_spread(void **state)
{
	(void)state;
	const double odd[] = {5, 1, 3}, even[] = {4, 1, 3, 2};
	near(stats_median(odd, 3), 3, 0);
	near(stats_median(even, 4), 2.5, 0);
	near(stats_mad(even, 4), 1, 0);
	near(stats_mean(even, 4), 2.5, 0);
	near(stats_sd(even, 4), sqrt(5.0 / 3), 1e-15);
	near(stats_sd(odd, 1), 0, 0);
	const double spiky[] = {1, 2, 3, 4, 1000};
	near(stats_trimmed(spiky, 5, 0.2), 3, 0);
	near(stats_trimmed(spiky, 2, 0.2), 1.5, 0);
	near(stats_trimmed(spiky, 1, 0.2), 1, 0);
	/* winsorised to 2 2 3 4 4: sd 1, times sqrt(5)/3 */
	near(stats_trimmed_se(spiky, 5, 0.2), sqrt(5) / 3, 1e-15);
	assert_true(isinf(stats_trimmed_se(spiky, 1, 0.2)));
}

/* Swapping the arms must only change the sign: no rule may favour a label. */
static void test_trimming_is_antisymmetric(void **state)
{
	(void)state;
	struct noise_rng r = {.s = 7};
	for (int trial = 0; trial < 50; trial++) {
		double x[11], y[11];
		for (int i = 0; i < 11; i++) {
			x[i] = noise_normal(&r);
			y[i] = -x[i];
		}
		near(stats_trimmed(y, 11, 0.2), -stats_trimmed(x, 11, 0.2), 1e-15);
	}
}

/* Abramowitz & Stegun tables 26.1, 26.5 and 26.10; NIST/SEMATECH e-Handbook 1.3.6.7.2. */
static void test_quantiles(void **state)
{
	(void)state;
	near(stats_normal_quantile(0.5), 0, 1e-16);
	near(stats_normal_quantile(0.975), 1.959963984540054, 1e-14);
	near(stats_normal_quantile(0.01), -2.3263478740408408, 1e-14);
	near(stats_normal_quantile(0.999), 3.090232306167813, 1e-13);
	near(stats_normal_quantile(1e-10), -6.361340902404056, 1e-12);
	near(stats_normal_cdf(1.959963984540054), 0.975, 1e-15);
	const struct {
		double p, nu, t;
	} table[] = {
		{0.975, 1, 12.706204736174705}, {0.975, 2, 4.302652729749464},
		{0.95, 3, 2.3533634348018264},  {0.975, 3, 3.1824463052842629},
		{0.99, 3, 4.540702858698421},   {0.975, 10, 2.2281388519649385},
		{0.995, 30, 2.749995653567231}, {0.95, 11, 1.7958848187036696},
		{0.025, 4, -2.7764451051977987},
	};
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		near(stats_t_quantile(table[i].p, table[i].nu), table[i].t, 1e-9);
		near(stats_t_cdf(table[i].t, table[i].nu), table[i].p, 1e-12);
	}
	near(stats_t_cdf(1, 1), 0.75, 1e-14); /* Cauchy: 1/2 + atan(1)/pi */
	/* A closed form at nu = 2: t = (2p - 1)/sqrt(2 p (1 - p)). */
	near(stats_t_quantile(0.99, 2), 0.98 / sqrt(2 * 0.99 * 0.01), 1e-12);
	near(stats_t_quantile(0.975, 1e7), stats_normal_quantile(0.975), 1e-6);
}

/* log of integral exp(f) over a grid, to keep tiny likelihoods from underflowing. */
static double log_add(double a, double b)
{
	double hi = fmax(a, b);
	return isinf(hi) ? hi : hi + log1p(exp(fmin(a, b) - hi));
}

static double log_likelihood(const double *x, int k, double mu, double sigma)
{
	double sum = 0;
	for (int i = 0; i < k; i++)
		sum += (x[i] - mu) * (x[i] - mu);
	return -k * log(sigma) - sum / (2 * sigma * sigma);
}

/* Both marginal likelihoods straight from the data, by quadrature over log sigma and the
 * standardised effect: no t statistic involved. */
static double quadrature_log_bf(const double *x, int k, double delta, double g)
{
	double m0 = -HUGE_VAL, m1 = -HUGE_VAL, step = 0.02, de = 0.05;
	for (double ls = -12; ls < 4; ls += step) {
		double sigma = exp(ls);
		m0 = log_add(m0, log_likelihood(x, k, delta, sigma));
		for (double e = -30; e <= 30; e += de)
			m1 = log_add(m1, log_likelihood(x, k, delta + e * sigma, sigma) -
						 e * e / (2 * g) - 0.5 * log(2 * M_PI * g) + log(de));
	}
	return m1 - m0;
}

static void test_bayes_factor_by_quadrature(void **state)
{
	(void)state;
	struct noise_rng r = {.s = 11};
	double delta = log(1.02);
	for (int k = 2; k <= 12; k += 5) {
		for (int effect = 0; effect < 3; effect++) {
			double x[12];
			for (int i = 0; i < k; i++)
				x[i] = delta + 0.01 * effect + 0.02 * noise_normal(&r);
			double s = stats_sd(x, (size_t)k);
			double t = sqrt(k) * (stats_mean(x, (size_t)k) - delta) / s;
			near(stats_log_bf(t, k, 10), quadrature_log_bf(x, k, delta, 10), 1e-6);
		}
	}
}

static void test_bayes_factor_limits(void **state)
{
	(void)state;
	near(stats_log_bf(3, 1, 10), 0, 0);
	/* t to infinity: (1+kg)^(nu/2). Three sessions can never reach 50, four can. */
	near(exp(stats_log_bf(HUGE_VAL, 3, 10)), 31, 1e-9);
	near(exp(stats_log_bf(1e9, 3, 10)), 31, 1e-6);
	near(exp(stats_log_bf(HUGE_VAL, 4, 10)), pow(41, 1.5), 1e-9);
	near(stats_log_bf(2, 5, 10), stats_log_bf(-2, 5, 10), 0);
	near(exp(stats_log_bf(0, 4, 10)), 1 / sqrt(41), 1e-12);
}

/* Under H0 the process has mean one at every k, whatever sigma. BF has heavy tails, so its mean
 * is checked through the identity E_H0[BF; BF < c] = P_H1[BF < c]. */
static void test_martingale(void **state)
{
	(void)state;
	struct noise_rng r = {.s = 5};
	int n = 20000, k = 5;
	double below0 = 0, below1 = 0, c = log(20);
	for (int i = 0; i < n; i++) {
		double x[5], y[5], e = sqrt(10) * noise_normal(&r);
		for (int j = 0; j < k; j++) {
			x[j] = 0.003 * noise_normal(&r);
			y[j] = 0.7 * (e + noise_normal(&r));
		}
		double t0 = sqrt(k) * stats_mean(x, 5) / stats_sd(x, 5);
		double t1 = sqrt(k) * stats_mean(y, 5) / stats_sd(y, 5);
		double b0 = stats_log_bf(t0, k, 10), b1 = stats_log_bf(t1, k, 10);
		below0 += b0 < c ? exp(b0) : 0;
		below1 += b1 < c;
	}
	near(below0 / n, below1 / n, 0.02);
}

static void test_looks(void **state)
{
	(void)state;
	struct stats_rule r = STATS_DEFAULT;
	r.s0 = 0.002;
	const double win[] = {0.05, 0.051, 0.049, 0.0505};
	for (int k = 1; k <= 3; k++)
		assert_int_equal(stats_look(&r, win, k).word, STATS_MORE);
	assert_int_equal(stats_look(&r, win, 4).word, STATS_PROMOTE);
	const double lose[] = {-0.05}, unclear[] = {0.013}, flat[] = {0.001, -0.001, 0.002, 0};
	assert_int_equal(stats_look(&r, lose, 1).word, STATS_REJECT);
	assert_int_equal(stats_look(&r, unclear, 1).word, STATS_MORE);
	r.s0 = 0.02; /* a noisy host may not reject on one session */
	assert_int_equal(stats_look(&r, lose + 0, 1).word, STATS_MORE);
	r.s0 = 0.002;
	assert_int_equal(stats_look(&r, flat, 4).word, STATS_REJECT);
	double edge[12];
	for (int i = 0; i < 12; i++)
		edge[i] = log(1.02) + (i % 2 ? 0.004 : -0.004);
	assert_int_equal(stats_look(&r, edge, 11).word, STATS_MORE);
	assert_int_equal(stats_look(&r, edge, 12).word, STATS_INCONCLUSIVE);
	const double same[] = {0.03, 0.03, 0.03, 0.03}; /* no spread at all: still needs four */
	assert_int_equal(stats_look(&r, same, 3).word, STATS_MORE);
	assert_int_equal(stats_look(&r, same, 4).word, STATS_PROMOTE);
}

static void test_intervals(void **state)
{
	(void)state;
	const double x[] = {0.01, 0.03, 0.02, 0.04};
	double lo, hi, s = stats_sd(x, 4), h = 3.1824463052842629 * s / 2;
	stats_interval(x, 4, 0.95, &lo, &hi);
	near(lo, exp(0.025 - h), 1e-9);
	near(hi, exp(0.025 + h), 1e-9);
	near(stats_lower(x, 4, 0.95), 0.025 - 2.3533634348018264 * s / 2, 1e-9);
	near(stats_upper(x, 4, 0.95), 0.025 + 2.3533634348018264 * s / 2, 1e-9);
	stats_interval(x, 1, 0.95, &lo, &hi);
	assert_true(lo == 0 && isinf(hi));
	struct stats_rule r = STATS_DEFAULT;
	near(stats_detectable(&r, 0, 0.9), 0.02, 1e-12);
	assert_true(stats_detectable(&r, 0.01, 0.9) > stats_detectable(&r, 0.005, 0.9));
}

static enum stats_word simulate(struct noise_rng *r, const struct stats_rule *rule, double theta,
				double sd)
{
	double x[16];
	for (int k = 1; k <= rule->k_max; k++) {
		x[k - 1] = theta + sd * noise_normal(r);
		enum stats_word w = stats_look(rule, x, k).word;
		if (w != STATS_MORE)
			return w;
	}
	return STATS_INCONCLUSIVE;
}

/* The promise, in small: `make bench-rule` runs it long and with noise of every rep. */
static void test_false_promotion_and_power(void **state)
{
	(void)state;
	const struct {
		double ratio, sd, least, most;
	} cell[] = {
		{1.00, 0.003, 0, 0},    {1.01, 0.003, 0, 0.002}, {1.02, 0.003, 0, 0.012},
		{1.03, 0.003, 0.85, 1}, {1.05, 0.003, 0.999, 1}, {1.00, 0.02, 0, 0.002},
		{1.02, 0.02, 0, 0.012},
	};
	struct noise_rng r = {.s = 20240601};
	struct stats_rule rule = STATS_DEFAULT;
	for (size_t c = 0; c < sizeof cell / sizeof *cell; c++) {
		int n = 2000, won = 0;
		rule.s0 = cell[c].sd;
		for (int i = 0; i < n; i++)
			won += simulate(&r, &rule, log(cell[c].ratio), cell[c].sd) == STATS_PROMOTE;
		double share = (double)won / n;
		if (share < cell[c].least || share > cell[c].most)
			fail_msg("true ratio %.2f, sd %.3f: promoted %.4f", cell[c].ratio,
				 cell[c].sd, share);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_location_and_spread),
		cmocka_unit_test(test_trimming_is_antisymmetric),
		cmocka_unit_test(test_quantiles),
		cmocka_unit_test(test_bayes_factor_by_quadrature),
		cmocka_unit_test(test_bayes_factor_limits),
		cmocka_unit_test(test_martingale),
		cmocka_unit_test(test_looks),
		cmocka_unit_test(test_intervals),
		cmocka_unit_test(test_false_promotion_and_power),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
