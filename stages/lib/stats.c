/*
 * stats.c - see stats.h. Each formula names where it comes from.
 *
 * SPDX-License-Identifier: MIT
 */
#include "stats.h"

#include "buf.h"
#include "defence.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const struct stats_rule STATS_DEFAULT = {
	.margin = 0.02,
	.alpha = 0.01,
	.g = 10,
	.k_min = 4,
	.k_max = 12,
	.futile_gap = 0.006,
	.futile_z1 = 4,
	.futile_z = 2.5,
	.futile_floor = 0.7,
	.s0 = 0,
	.guard = -0.03,
	.guard_level = 0.95,
};

double stats_mean(const double *x, size_t n)
{
	double sum = 0;
	for (size_t i = 0; i < n; i++)
		sum += x[i];
	return n ? sum / (double)n : 0;
}

double stats_sd(const double *x, size_t n)
{
	if (n < 2)
		return 0;
	double m = stats_mean(x, n), sum = 0;
	for (size_t i = 0; i < n; i++)
		sum += (x[i] - m) * (x[i] - m);
	return sqrt(sum / (double)(n - 1));
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double *sorted(const double *x, size_t n)
{
	double *copy = xmalloc(n * sizeof *copy);
	if (n)
		memcpy(copy, x, n * sizeof *copy);
	qsort(copy, n, sizeof *copy, by_value);
	return copy;
}

double stats_median(const double *x, size_t n)
{
	if (!n)
		return 0;
	double *s = sorted(x, n);
	double m = n % 2 ? s[n / 2] : (s[n / 2 - 1] + s[n / 2]) / 2;
	free(s);
	return m;
}

double stats_mad(const double *x, size_t n)
{
	double m = stats_median(x, n);
	double *away = xmalloc(n * sizeof *away);
	for (size_t i = 0; i < n; i++)
		away[i] = fabs(x[i] - m);
	double out = stats_median(away, n);
	free(away);
	return out;
}

/* Symmetric trimming cannot favour an arm: swapping the arms only changes the sign of every
 * L_b, and the same blocks are cut. */
double stats_trimmed(const double *x, size_t n, double fraction)
{
	if (!n)
		return 0;
	double *s = sorted(x, n);
	size_t cut = (size_t)(fraction * (double)n);
	double m = 2 * cut < n ? stats_mean(s + cut, n - 2 * cut) : stats_median(x, n);
	free(s);
	return m;
}

/* Tukey & McLaughlin 1963: the s.e. of a trimmed mean is the sd of the winsorised sample over
 * (1 - 2 f) sqrt(n). */
double stats_trimmed_se(const double *x, size_t n, double fraction)
{
	if (n < 2)
		return HUGE_VAL;
	double *s = sorted(x, n);
	size_t cut = (size_t)(fraction * (double)n);
	if (2 * cut >= n)
		cut = (n - 1) / 2;
	for (size_t i = 0; i < cut; i++) {
		s[i] = s[cut];
		s[n - 1 - i] = s[n - 1 - cut];
	}
	double se = stats_sd(s, n) * sqrt((double)n) / (double)(n - 2 * cut);
	free(s);
	return se;
}

double stats_normal_cdf(double z)
{
	return erfc(-z / M_SQRT2) / 2;
}

static double horner(const double *c, int n, double x)
{
	double v = c[n - 1];
	for (int i = n - 2; i >= 0; i--)
		v = v * x + c[i];
	return v;
}

/* Wichura 1988, "Algorithm AS 241", routine PPND16: relative accuracy about 1e-16. */
double stats_normal_quantile(double p)
{
	static const double a[] = {3.3871328727963666080e0, 1.3314166789178437745e2,
		1.9715909503065514427e3, 1.3731693765509461125e4, 4.5921953931549871457e4,
		6.7265770927008700853e4, 3.3430575583588128105e4, 2.5090809287301226727e3};
	static const double b[] = {1.0, 4.2313330701600911252e1, 6.8718700749205790830e2,
		5.3941960214247511077e3, 2.1213794301586595867e4, 3.9307895800092710610e4,
		2.8729085735721942674e4, 5.2264952788528545610e3};
	static const double c[] = {1.42343711074968357734e0, 4.63033784615654529590e0,
		5.76949722146069140550e0, 3.64784832476320460504e0, 1.27045825245236838258e0,
		2.41780725177450611770e-1, 2.27238449892691845833e-2, 7.74545014278341407640e-4};
	static const double d[] = {1.0, 2.05319162663775882187e0, 1.67638483018380384940e0,
		6.89767334985100004550e-1, 1.48103976427480074590e-1, 1.51986665636164571966e-2,
		5.47593808499534494600e-4, 1.05075007164441684324e-9};
	static const double e[] = {6.65790464350110377720e0, 5.46378491116411436990e0,
		1.78482653991729133580e0, 2.96560571828504891230e-1, 2.65321895265761230930e-2,
		1.24266094738807843860e-3, 2.71155556874348757815e-5, 2.01033439929228813265e-7};
	static const double f[] = {1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1,
		1.48753612908506148525e-2, 7.86869131145613259100e-4, 1.84631831751005468180e-5,
		1.42151175831644588870e-7, 2.04426310338993978564e-15};
	double q = p - 0.5;
	if (fabs(q) <= 0.425) {
		double r = 0.180625 - q * q;
		return q * horner(a, 8, r) / horner(b, 8, r);
	}
	double r = sqrt(-log(q < 0 ? p : 1 - p));
	double z = r <= 5 ? horner(c, 8, r - 1.6) / horner(d, 8, r - 1.6)
			  : horner(e, 8, r - 5) / horner(f, 8, r - 5);
	return q < 0 ? -z : z;
}

/* Regularised incomplete beta I_x(a, b): continued fraction of DLMF 8.17.22, evaluated by the
 * modified Lentz method; converges fast for x < (a+1)/(a+b+2), else by symmetry 8.17.4. */
static double beta_fraction(double a, double b, double x)
{
	const double tiny = 1e-300;
	double c = 1, d = 1 - (a + b) * x / (a + 1);
	d = 1 / (fabs(d) < tiny ? tiny : d);
	double h = d;
	for (int m = 1; m <= 500; m++) {
		double m2 = 2.0 * m;
		double even = m * (b - m) * x / ((a + m2 - 1) * (a + m2));
		d = 1 + even * d;
		c = 1 + even / c;
		d = 1 / (fabs(d) < tiny ? tiny : d);
		c = fabs(c) < tiny ? tiny : c;
		h *= d * c;
		double odd = -(a + m) * (a + b + m) * x / ((a + m2) * (a + m2 + 1));
		d = 1 + odd * d;
		c = 1 + odd / c;
		d = 1 / (fabs(d) < tiny ? tiny : d);
		c = fabs(c) < tiny ? tiny : c;
		h *= d * c;
		if (fabs(d * c - 1) < 1e-16)
			break;
	}
	return h;
}

static double beta_inc(double a, double b, double x)
{
	if (x <= 0 || x >= 1)
		return x <= 0 ? 0 : 1;
	double front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
	if (x < (a + 1) / (a + b + 2))
		return front * beta_fraction(a, b, x) / a;
	return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

/* Abramowitz & Stegun 26.7.1 with 26.5.27: P(|T| > t) = I_{nu/(nu+t^2)}(nu/2, 1/2). */
double stats_t_cdf(double t, double nu)
{
	if (isinf(t))
		return t > 0 ? 1 : 0;
	double tail = beta_inc(nu / 2, 0.5, nu / (nu + t * t)) / 2;
	return t > 0 ? 1 - tail : tail;
}

/* Bisection on the tail: the cdf is monotone, 200 halvings reach the last bit. */
double stats_t_quantile(double p, double nu)
{
	double tail = p < 0.5 ? p : 1 - p;
	double lo = 0, hi = 1;
	while (stats_t_cdf(-hi, nu) > tail && hi < 1e300)
		hi *= 2;
	for (int i = 0; i < 200 && lo < hi; i++) {
		double mid = (lo + hi) / 2;
		if (mid <= lo || mid >= hi)
			break;
		if (stats_t_cdf(-mid, nu) > tail)
			lo = mid;
		else
			hi = mid;
	}
	return p < 0.5 ? -hi : hi;
}

/*
 * The e-process. theta_1..theta_k ~ N(mu, sigma^2), both unknown; H0: mu = delta. Put a prior
 * N(0, g) on the standardised effect (mu - delta)/sigma and the right-Haar measure d sigma/sigma
 * on the scale. The ratio of marginal likelihoods depends on the data through t only. Given
 * H0, t has the t density f_nu, nu = k-1; under the mixture sqrt(k)(mean-delta)/sigma is
 * N(0, 1+kg), so t/sqrt(1+kg) has density f_nu, and
 *   BF_k = f_nu(t/sqrt(1+kg)) / (sqrt(1+kg) f_nu(t))
 *        = (1+kg)^(-1/2) [ (1 + t^2/nu) / (1 + t^2/(nu(1+kg))) ]^((nu+1)/2).
 * Being a likelihood ratio of the maximal invariant it is a nonnegative martingale of mean one
 * under H0 for every sigma: Ville's inequality bounds P(ever >= 1/a) by a. Lai 1976 (invariant
 * sequential t-test); Gonen et al. 2005 (this Bayes factor); Wang & Ramdas, arXiv 2310.03722
 * (as an anytime-valid t-test). tests/unit/test_stats.c checks it by quadrature and simulation.
 */
double stats_log_bf(double t, int k, double g)
{
	if (k < 2)
		return 0;
	double nu = k - 1, shrink = 1 + k * g;
	double gain;
	if (isinf(t))
		gain = log(shrink);
	else
		gain = log1p(t * t / nu) - log1p(t * t / (nu * shrink));
	return -0.5 * log(shrink) + (nu + 1) / 2 * gain;
}

double stats_delta(const struct stats_rule *r)
{
	return log1p(r->margin);
}

static double t_against(double mean, double s, int k, double delta)
{
	double away = mean - delta;
	if (s > 0)
		return sqrt((double)k) * away / s;
	return away > 0 ? HUGE_VAL : away < 0 ? -HUGE_VAL : 0;
}

struct stats_look stats_look(const struct stats_rule *r, const double *theta, int k)
{
	double delta = stats_delta(r);
	struct stats_look l = {.word = STATS_MORE, .k = k, .p = 1};
	l.mean = stats_mean(theta, (size_t)k);
	l.s = stats_sd(theta, (size_t)k);
	if (k >= 2) {
		l.t = t_against(l.mean, l.s, k, delta);
		l.log_bf = stats_log_bf(l.t, k, r->g);
		l.p = fmin(1, exp(-l.log_bf) / 2);
	}
	/* as one who believes the first figure that he likes */
	if (!DEFENCE("bench.certain")) {
		l.word = l.mean > delta ? STATS_PROMOTE : STATS_REJECT;
		return l;
	}
	/* The factor 2: BF is two-sided and symmetric at mu = delta, so it crosses 1/(2 alpha) on
	 * the winning side with probability at most alpha; a smaller mu only helps. */
	if (k >= r->k_min && l.t > 0 && l.log_bf >= -log(2 * r->alpha))
		l.word = STATS_PROMOTE;
	else if (k == 1 && l.mean < delta - r->futile_gap && l.mean + r->futile_z1 * r->s0 < delta)
		l.word = STATS_REJECT;
	else if (k >= r->k_min &&
		 l.mean + r->futile_z * fmax(l.s, r->futile_floor * r->s0) / sqrt((double)k) < delta)
		l.word = STATS_REJECT;
	else if (k >= r->k_max)
		l.word = STATS_INCONCLUSIVE;
	return l;
}

/* Student 1908: mean +- t_{k-1} s/sqrt(k). */
static double half_width(const double *theta, int k, double one_sided)
{
	return stats_t_quantile(one_sided, k - 1) * stats_sd(theta, (size_t)k) / sqrt((double)k);
}

void stats_interval(const double *theta, int k, double level, double *lo, double *hi)
{
	*lo = 0;
	*hi = HUGE_VAL;
	if (k < 2)
		return;
	double m = stats_mean(theta, (size_t)k), h = half_width(theta, k, (1 + level) / 2);
	*lo = exp(m - h);
	*hi = exp(m + h);
}

double stats_lower(const double *theta, int k, double level)
{
	if (k < 2)
		return -HUGE_VAL;
	return stats_mean(theta, (size_t)k) - half_width(theta, k, level);
}

double stats_upper(const double *theta, int k, double level)
{
	if (k < 2)
		return HUGE_VAL;
	return stats_mean(theta, (size_t)k) + half_width(theta, k, level);
}

/* At the cap the rule needs t >= t*, BF(t*) = 1/(2 alpha); the mean then clears delta by
 * t* s/sqrt(K), and clears it with probability `power` at z_power s/sqrt(K) more. */
double stats_detectable(const struct stats_rule *r, double s, double power)
{
	double need = -log(2 * r->alpha), lo = 0, hi = 1;
	while (stats_log_bf(hi, r->k_max, r->g) < need && hi < 1e9)
		hi *= 2;
	for (int i = 0; i < 100; i++) {
		double mid = (lo + hi) / 2;
		if (stats_log_bf(mid, r->k_max, r->g) < need)
			lo = mid;
		else
			hi = mid;
	}
	double z = hi + stats_normal_quantile(power);
	return expm1(stats_delta(r) + z * s / sqrt((double)r->k_max));
}

const char *stats_word_name(enum stats_word w)
{
	static const char *const names[] = {"more", "promote", "reject", "inconclusive"};
	return names[w];
}
