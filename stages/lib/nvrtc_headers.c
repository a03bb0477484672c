/*
 * nvrtc_headers.c - see nvrtc.h. Short texts for the standard headers that candidates may include
 * (source.c lists them). The types and limits come from the toolkit's own cuda/std, so both agree;
 * mathematics, printf and assert are built into the compiler or into nothing.
 *
 * SPDX-License-Identifier: MIT
 */
#include "nvrtc.h"

#define STD(name) "#pragma once\n#include <cuda/std/" name ">\n"
/* std:: names through libcu++; heavy ones cost half a second, as they do anywhere */
#define INTO_STD(name) STD(name) "namespace std { using namespace ::cuda::std; }\n"
#define NOTHING "#pragma once\n"

#define STDINT STD("cstdint")
#define STDDEF STD("cstddef")
#define LIMITS STD("climits")
#define FLOATS \
	"#pragma once\n" \
	"#define FLT_RADIX 2\n#define FLT_MANT_DIG 24\n#define DBL_MANT_DIG 53\n#define FLT_DIG 6\n" \
	"#define DBL_DIG 15\n#define FLT_MIN_EXP (-125)\n#define DBL_MIN_EXP (-1021)\n#define FLT_MAX_EXP 128\n" \
	"#define DBL_MAX_EXP 1024\n#define FLT_MAX 3.402823466e+38f\n#define DBL_MAX 1.7976931348623157e+308\n" \
	"#define FLT_EPSILON 1.1920928955078125e-07f\n#define DBL_EPSILON 2.2204460492503131e-16\n" \
	"#define FLT_MIN 1.175494351e-38f\n#define DBL_MIN 2.2250738585072014e-308\n"
#define MATH \
	"#pragma once\n" \
	"#ifndef INFINITY\n#define INFINITY (__int_as_float(0x7f800000))\n#endif\n" \
	"#ifndef NAN\n#define NAN (__int_as_float(0x7fffffff))\n#endif\n" \
	"#ifndef HUGE_VALF\n#define HUGE_VALF INFINITY\n#endif\n" \
	"#ifndef M_PI\n#define M_PI 3.14159265358979323846\n#define M_SQRT2 1.41421356237309504880\n" \
	"#define M_SQRT1_2 0.70710678118654752440\n#define M_LOG2E 1.44269504088896340736\n" \
	"#define M_LN2 0.69314718055994530942\n#define M_2_SQRTPI 1.12837916709551257390\n" \
	"#define M_E 2.7182818284590452354\n#define M_PI_2 1.57079632679489661923\n#define M_1_PI " \
	"0.31830988618379067154\n#define M_LOG10E 0.43429448190325182765\n#define M_LN10 2.30258509299404568402\n#endif\n"
#define CMATH \
	MATH \
	"namespace std { using ::fabs; using ::sqrt; using ::exp; using ::exp2; using ::log; using ::log2; " \
	"using ::log10; using ::pow; using ::sin; using ::cos; using ::tan; using ::tanh; using ::sinh; using ::cosh; " \
	"using ::erf; using ::fmax; using ::fmin; using ::fmod; using ::floor; using ::ceil; using ::round; " \
	"using ::rint; using ::trunc; using ::abs; using ::isnan; using ::isinf; using ::isfinite; using ::fma; }\n"
#define ASSERT "#undef assert\n#define assert(x) ((void)0)\n"

#define HEADERS(X) \
	X("stdint.h", STDINT) X("cstdint", STDINT "namespace std { using ::int8_t; using ::int16_t; using ::int32_t; " \
	"using ::int64_t; using ::uint8_t; using ::uint16_t; using ::uint32_t; using ::uint64_t; using ::intptr_t; " \
	"using ::uintptr_t; }\n") \
	X("stddef.h", STDDEF) X("cstddef", STDDEF "namespace std { using ::size_t; using ::ptrdiff_t; }\n") \
	X("limits.h", LIMITS) X("climits", LIMITS) X("float.h", FLOATS) X("cfloat", FLOATS) \
	X("math.h", MATH) X("cmath", CMATH) X("assert.h", ASSERT) X("cassert", ASSERT) \
	X("stdio.h", NOTHING) X("cstdio", NOTHING) X("stdlib.h", NOTHING) X("cstdlib", NOTHING) \
	X("string.h", NOTHING) X("cstring", NOTHING) \
	X("type_traits", INTO_STD("type_traits")) X("utility", INTO_STD("utility")) \
	X("limits", INTO_STD("limits")) X("array", INTO_STD("array")) X("tuple", INTO_STD("tuple"))

#define NAME(name, text) name,
#define TEXT(name, text) text,
const char *const nvrtc_header_names[] = {HEADERS(NAME)};
const char *const nvrtc_header_texts[] = {HEADERS(TEXT)};
const int nvrtc_header_count = sizeof nvrtc_header_names / sizeof *nvrtc_header_names;
