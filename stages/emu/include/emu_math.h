/* Mathematical functions: libm's, or the compiler's own where an instruction does it.
 *
 * SPDX-License-Identifier: MIT
 *
 * The fast intrinsics (__expf, __sinf, ...) are as exact as the plain functions here; on a GPU
 * they are not. `a / b` and sqrtf are correctly rounded on both.
 */
#ifndef EMU_MATH_H
#define EMU_MATH_H

#define EMU_MATH1(name) \
	extern "C" { double name(double) noexcept; float name##f(float) noexcept; } \
	EMU_INLINE float name(float x) { return name##f(x); }
#define EMU_MATH2(name) \
	extern "C" { double name(double, double) noexcept; float name##f(float, float) noexcept; } \
	EMU_INLINE float name(float x, float y) { return name##f(x, y); }

EMU_MATH1(acos) EMU_MATH1(acosh) EMU_MATH1(asin) EMU_MATH1(asinh) EMU_MATH1(atan) EMU_MATH1(atanh)
EMU_MATH1(cbrt) EMU_MATH1(ceil) EMU_MATH1(cos) EMU_MATH1(cosh) EMU_MATH1(erf) EMU_MATH1(erfc)
EMU_MATH1(exp) EMU_MATH1(exp2) EMU_MATH1(expm1) EMU_MATH1(fabs) EMU_MATH1(floor) EMU_MATH1(lgamma)
EMU_MATH1(log) EMU_MATH1(log10) EMU_MATH1(log1p) EMU_MATH1(log2) EMU_MATH1(logb)
EMU_MATH1(nearbyint) EMU_MATH1(rint) EMU_MATH1(round) EMU_MATH1(sin) EMU_MATH1(sinh)
EMU_MATH1(sqrt) EMU_MATH1(tan) EMU_MATH1(tanh) EMU_MATH1(tgamma) EMU_MATH1(trunc)
EMU_MATH2(atan2) EMU_MATH2(copysign) EMU_MATH2(fdim) EMU_MATH2(fmax) EMU_MATH2(fmin)
EMU_MATH2(fmod) EMU_MATH2(hypot) EMU_MATH2(nextafter) EMU_MATH2(pow) EMU_MATH2(remainder)
#undef EMU_MATH1
#undef EMU_MATH2

extern "C" {
double exp10(double) noexcept;
float exp10f(float) noexcept;
double fma(double, double, double) noexcept;
float fmaf(float, float, float) noexcept;
double frexp(double, int *) noexcept;
float frexpf(float, int *) noexcept;
double ldexp(double, int) noexcept;
float ldexpf(float, int) noexcept;
double scalbn(double, int) noexcept;
float scalbnf(float, int) noexcept;
double modf(double, double *) noexcept;
float modff(float, float *) noexcept;
double remquo(double, double, int *) noexcept;
float remquof(float, float, int *) noexcept;
int ilogb(double) noexcept;
int ilogbf(float) noexcept;
long lrint(double) noexcept;
long lrintf(float) noexcept;
long lround(double) noexcept;
long lroundf(float) noexcept;
long long llrint(double) noexcept;
long long llrintf(float) noexcept;
long long llround(double) noexcept;
long long llroundf(float) noexcept;
void sincos(double, double *, double *) noexcept;
void sincosf(float, float *, float *) noexcept;
double j0(double) noexcept;
double j1(double) noexcept;
double y0(double) noexcept;
double y1(double) noexcept;
}
EMU_INLINE float fma(float a, float b, float c) { return fmaf(a, b, c); }
EMU_INLINE float ldexp(float x, int e) { return ldexpf(x, e); }
EMU_INLINE float frexp(float x, int *e) { return frexpf(x, e); }
EMU_INLINE float modf(float x, float *p) { return modff(x, p); }
EMU_INLINE long lround(float x) { return lroundf(x); }
EMU_INLINE long lrint(float x) { return lrintf(x); }

EMU_INLINE double pow(double x, int n) { return pow(x, (double)n); }
EMU_INLINE float pow(float x, int n) { return powf(x, (float)n); }
EMU_INLINE float rsqrtf(float x) { return 1.0f / sqrtf(x); }
EMU_INLINE double rsqrt(double x) { return 1.0 / sqrt(x); }
EMU_INLINE float rsqrt(float x) { return rsqrtf(x); }
EMU_INLINE float rcbrtf(float x) { return 1.0f / cbrtf(x); }
EMU_INLINE double rcbrt(double x) { return 1.0 / cbrt(x); }
EMU_INLINE float rhypotf(float x, float y) { return 1.0f / hypotf(x, y); }
EMU_INLINE float norm3df(float a, float b, float c)
{
	return (float)sqrt((double)a * a + (double)b * b + (double)c * c);
}
EMU_INLINE float rnorm3df(float a, float b, float c)
{
	return (float)(1.0 / sqrt((double)a * a + (double)b * b + (double)c * c));
}
EMU_INLINE float norm4df(float a, float b, float c, float d)
{
	return (float)sqrt((double)a * a + (double)b * b + (double)c * c + (double)d * d);
}
static constexpr double emu_pi = 3.14159265358979323846;
EMU_INLINE float sinpif(float x) { return (float)sin(emu_pi * fmod((double)x, 2.0)); }
EMU_INLINE float cospif(float x) { return (float)cos(emu_pi * fmod((double)x, 2.0)); }
EMU_INLINE double sinpi(double x) { return sin(emu_pi * fmod(x, 2.0)); }
EMU_INLINE double cospi(double x) { return cos(emu_pi * fmod(x, 2.0)); }
EMU_INLINE void sincospif(float x, float *s, float *c)
{
	*s = sinpif(x);
	*c = cospif(x);
}
EMU_INLINE float normcdff(float x) { return (float)(0.5 * erfc(-(double)x * 0.70710678118654752440)); }
EMU_INLINE double normcdf(double x) { return 0.5 * erfc(-x * 0.70710678118654752440); }
EMU_INLINE float erfcxf(float x) { return (float)(exp((double)x * x) * erfc((double)x)); }
EMU_INLINE float fdividef(float a, float b) { return a / b; }

EMU_INLINE bool isnan(float x) { return __builtin_isnan(x); }
EMU_INLINE bool isnan(double x) { return __builtin_isnan(x); }
EMU_INLINE bool isinf(float x) { return __builtin_isinf(x); }
EMU_INLINE bool isinf(double x) { return __builtin_isinf(x); }
EMU_INLINE bool isfinite(float x) { return __builtin_isfinite(x); }
EMU_INLINE bool isfinite(double x) { return __builtin_isfinite(x); }
EMU_INLINE bool signbit(float x) { return __builtin_signbit(x) != 0; }
EMU_INLINE bool signbit(double x) { return __builtin_signbit(x) != 0; }
EMU_INLINE float nanf(const char *) { return __builtin_nanf(""); }
EMU_INLINE double nan(const char *) { return __builtin_nan(""); }

EMU_INLINE constexpr int abs(int x) { return x < 0 ? -x : x; }
EMU_INLINE constexpr long abs(long x) { return x < 0 ? -x : x; }
EMU_INLINE constexpr long long abs(long long x) { return x < 0 ? -x : x; }
EMU_INLINE float abs(float x) { return fabsf(x); }
EMU_INLINE double abs(double x) { return fabs(x); }
EMU_INLINE constexpr long labs(long x) { return x < 0 ? -x : x; }
EMU_INLINE constexpr long long llabs(long long x) { return x < 0 ? -x : x; }

#define EMU_MIN_MAX(R, A, B) \
	EMU_INLINE constexpr R min(A a, B b) { return (R)a < (R)b ? (R)a : (R)b; } \
	EMU_INLINE constexpr R max(A a, B b) { return (R)a > (R)b ? (R)a : (R)b; }
EMU_MIN_MAX(int, int, int)
EMU_MIN_MAX(unsigned, unsigned, unsigned)
EMU_MIN_MAX(unsigned, int, unsigned)
EMU_MIN_MAX(unsigned, unsigned, int)
EMU_MIN_MAX(long, long, long)
EMU_MIN_MAX(unsigned long, unsigned long, unsigned long)
EMU_MIN_MAX(unsigned long, long, unsigned long)
EMU_MIN_MAX(unsigned long, unsigned long, long)
EMU_MIN_MAX(long long, long long, long long)
EMU_MIN_MAX(unsigned long long, unsigned long long, unsigned long long)
EMU_MIN_MAX(unsigned long long, long long, unsigned long long)
EMU_MIN_MAX(unsigned long long, unsigned long long, long long)
#undef EMU_MIN_MAX
/* a NaN loses, as in fminf */
EMU_INLINE float min(float a, float b) { return fminf(a, b); }
EMU_INLINE float max(float a, float b) { return fmaxf(a, b); }
EMU_INLINE double min(double a, double b) { return fmin(a, b); }
EMU_INLINE double max(double a, double b) { return fmax(a, b); }
EMU_INLINE double min(float a, double b) { return fmin((double)a, b); }
EMU_INLINE double max(float a, double b) { return fmax((double)a, b); }
EMU_INLINE double min(double a, float b) { return fmin(a, (double)b); }
EMU_INLINE double max(double a, float b) { return fmax(a, (double)b); }
EMU_INLINE unsigned umin(unsigned a, unsigned b) { return a < b ? a : b; }
EMU_INLINE unsigned umax(unsigned a, unsigned b) { return a > b ? a : b; }
EMU_INLINE long long llmin(long long a, long long b) { return a < b ? a : b; }
EMU_INLINE long long llmax(long long a, long long b) { return a > b ? a : b; }

EMU_INLINE float __expf(float x) { return expf(x); }
EMU_INLINE float __exp10f(float x) { return exp10f(x); }
EMU_INLINE float __exp2f(float x) { return exp2f(x); }
EMU_INLINE float __logf(float x) { return logf(x); }
EMU_INLINE float __log2f(float x) { return log2f(x); }
EMU_INLINE float __log10f(float x) { return log10f(x); }
EMU_INLINE float __sinf(float x) { return sinf(x); }
EMU_INLINE float __cosf(float x) { return cosf(x); }
EMU_INLINE float __tanf(float x) { return tanf(x); }
EMU_INLINE float __tanhf(float x) { return tanhf(x); }
EMU_INLINE void __sincosf(float x, float *s, float *c) { sincosf(x, s, c); }
EMU_INLINE float __powf(float x, float y) { return powf(x, y); }
EMU_INLINE float __fdividef(float a, float b) { return a / b; }
EMU_INLINE float __saturatef(float x) { return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; }
EMU_INLINE float __frsqrt_rn(float x) { return (float)(1.0 / sqrt((double)x)); }

#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#define HUGE_VALF __builtin_huge_valf()
#define HUGE_VAL __builtin_huge_val()
#define M_PI 3.14159265358979323846
#define M_PI_2 1.57079632679489661923
#define M_PI_4 0.78539816339744830962
#define M_1_PI 0.31830988618379067154
#define M_2_PI 0.63661977236758134308
#define M_2_SQRTPI 1.12837916709551257390
#define M_E 2.7182818284590452354
#define M_LOG2E 1.4426950408889634074
#define M_LOG10E 0.43429448190325182765
#define M_LN2 0.69314718055994530942
#define M_LN10 2.30258509299404568402
#define M_SQRT2 1.41421356237309504880
#define M_SQRT1_2 0.70710678118654752440
#define CUDART_INF_F __builtin_inff()
#define CUDART_NAN_F __builtin_nanf("")
#define CUDART_INF __builtin_inf()
#define CUDART_PI_F 3.141592654f
#define CUDART_PI 3.1415926535897931
#define CUDART_L2E_F 1.442695041f
#define CUDART_LN2_F 0.6931471806f
#define CUDART_MAX_NORMAL_F 3.402823466e38f

#endif
