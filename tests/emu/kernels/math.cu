// launch: functions grid=4 block=64 args=o
// Mathematical functions and fast intrinsics exist and agree with identities.

#include <math.h>
#include <float.h>

static __device__ void expect(unsigned *o, bool ok, unsigned where)
{
	atomicAdd(&o[1], 1u);
	if (!ok && atomicAdd(&o[0], 1u) == 0)
		o[2] = where;
}
__device__ bool near(double a, double b, double tolerance = 1e-5)
{
	return fabs(a - b) <= tolerance * (1.0 + fabs(b));
}

__global__ void functions(unsigned *o)
{
	float x = 0.05f + (blockIdx.x * 64 + threadIdx.x) * 0.01f;
	double d = (double)x;
	expect(o, near(sinf(x) * sinf(x) + cosf(x) * cosf(x), 1.0) && near(tanf(x), sinf(x) / cosf(x), 1e-3), 1);
	expect(o, near(logf(expf(x)), x) && near(log2f(exp2f(x)), x) && near(log10f(exp10f(x)), x), 2);
	expect(o, near(sqrtf(x) * rsqrtf(x), 1.0) && near(cbrtf(x) * cbrtf(x) * cbrtf(x), x), 3);
	expect(o, near(tanhf(x), 1.0 - 2.0 / (exp(2 * d) + 1.0)) && near(erff(x) + erfcf(x), 1.0), 4);
	expect(o, near(powf(x, 2.5f), exp(2.5 * log(d))) && near(pow(x, 2), d * d) && near(hypotf(3 * x, 4 * x), 5 * d), 5);
	expect(o, near(__expf(x), expf(x)) && near(__logf(x), logf(x)) && near(__sinf(x), sinf(x)) && near(__cosf(x), cosf(x)), 6);
	expect(o, near(__powf(x, 3.0f), d * d * d) && near(__fdividef(1.0f, x), 1.0 / d) && near(__log2f(x), log2(d)), 7);
	float s, c;
	sincosf(x, &s, &c);
	expect(o, s == sinf(x) && c == cosf(x), 8);
	__sincosf(x, &s, &c);
	expect(o, near(s, sinf(x)) && near(c, cosf(x)), 9);
	expect(o, floorf(-x) == -ceilf(x) && truncf(2.7f) == 2.0f && roundf(2.5f) == 3.0f && rintf(2.5f) == 2.0f, 10);
	expect(o, fmodf(7.5f, 2.0f) == 1.5f && copysignf(x, -1.0f) == -x && fdimf(1.0f, 3.0f) == 0.0f, 11);
	expect(o, fmaxf(NAN, x) == x && fminf(x, NAN) == x && isnan(NAN) && isinf(INFINITY) && !isfinite(INFINITY) && signbit(-x), 12);
	expect(o, near(log1pf(x), log1p(d)) && near(expm1f(x), expm1(d)) && near(sinpif(0.5f), 1.0) && near(cospif(1.0f), -1.0), 13);
	expect(o, near(normcdff(0.0f), 0.5) && near(asinf(sinf(0.5f)), 0.5) && near(atan2f(x, x), M_PI_4), 14);
	expect(o, sin(x) == sinf(x) && exp(d) > 0 && FLT_MAX > 1e38f && fma(2.0f, 3.0f, 1.0f) == 7.0f && ldexpf(x, 1) == 2 * x, 15);
	expect(o, lrintf(2.5f) == 2 && llroundf(-2.5f) == -3 && near(rnorm3df(1.0f, 2.0f, 2.0f), 1.0 / 3), 16);
}
