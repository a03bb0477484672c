/* Integer and bit intrinsics, conversions, arithmetic with a stated rounding.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef EMU_INTRIN_H
#define EMU_INTRIN_H

EMU_INLINE int __popc(unsigned x) { return __builtin_popcount(x); }
EMU_INLINE int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
EMU_INLINE int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
EMU_INLINE int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
EMU_INLINE int __ffs(int x) { return __builtin_ffs(x); }
EMU_INLINE int __ffsll(long long x) { return __builtin_ffsll(x); }
EMU_INLINE unsigned __brev(unsigned x)
{
	x = (x >> 1 & 0x55555555u) | (x & 0x55555555u) << 1;
	x = (x >> 2 & 0x33333333u) | (x & 0x33333333u) << 2;
	x = (x >> 4 & 0x0f0f0f0fu) | (x & 0x0f0f0f0fu) << 4;
	return __builtin_bswap32(x);
}
EMU_INLINE unsigned long long __brevll(unsigned long long x)
{
	return (unsigned long long)__brev((unsigned)x) << 32 | __brev((unsigned)(x >> 32));
}
EMU_INLINE unsigned __byte_perm(unsigned a, unsigned b, unsigned s)
{
	unsigned long long both = (unsigned long long)b << 32 | a;
	unsigned r = 0;
	for (int i = 0; i < 4; i++)
		r |= (unsigned)(both >> ((s >> (4 * i) & 7u) * 8) & 255u) << (8 * i);
	return r;
}
EMU_INLINE unsigned __funnelshift_l(unsigned lo, unsigned hi, unsigned n)
{
	return (unsigned)(((unsigned long long)hi << 32 | lo) << (n & 31u) >> 32);
}
EMU_INLINE unsigned __funnelshift_r(unsigned lo, unsigned hi, unsigned n)
{
	return (unsigned)(((unsigned long long)hi << 32 | lo) >> (n & 31u));
}
EMU_INLINE unsigned __funnelshift_lc(unsigned lo, unsigned hi, unsigned n)
{
	return n >= 32 ? lo : __funnelshift_l(lo, hi, n);
}
EMU_INLINE unsigned __funnelshift_rc(unsigned lo, unsigned hi, unsigned n)
{
	return n >= 32 ? hi : __funnelshift_r(lo, hi, n);
}
EMU_INLINE int __mulhi(int a, int b) { return (int)((long long)a * b >> 32); }
EMU_INLINE unsigned __umulhi(unsigned a, unsigned b)
{
	return (unsigned)((unsigned long long)a * b >> 32);
}
EMU_INLINE long long __mul64hi(long long a, long long b)
{
	return (long long)((__int128)a * b >> 64);
}
EMU_INLINE unsigned long long __umul64hi(unsigned long long a, unsigned long long b)
{
	return (unsigned long long)((unsigned __int128)a * b >> 64);
}
EMU_INLINE int __mul24(int a, int b) { return (int)((unsigned)(a << 8 >> 8) * (unsigned)(b << 8 >> 8)); }
EMU_INLINE unsigned __umul24(unsigned a, unsigned b) { return (a & 0xffffffu) * (b & 0xffffffu); }
EMU_INLINE unsigned __sad(int a, int b, unsigned c)
{
	return c + (a > b ? (unsigned)a - (unsigned)b : (unsigned)b - (unsigned)a);
}
EMU_INLINE unsigned __usad(unsigned a, unsigned b, unsigned c) { return c + (a > b ? a - b : b - a); }
EMU_INLINE int __hadd(int a, int b) { return (int)(((long long)a + b) >> 1); }
EMU_INLINE int __rhadd(int a, int b) { return (int)(((long long)a + b + 1) >> 1); }
EMU_INLINE unsigned __uhadd(unsigned a, unsigned b)
{
	return (unsigned)(((unsigned long long)a + b) >> 1);
}
EMU_INLINE unsigned __urhadd(unsigned a, unsigned b)
{
	return (unsigned)(((unsigned long long)a + b + 1) >> 1);
}
EMU_INLINE int __dp4a(int a, int b, int c)
{
	for (int i = 0; i < 32; i += 8)
		c += (int)(signed char)(a >> i) * (signed char)(b >> i);
	return c;
}
EMU_INLINE unsigned __dp4a(unsigned a, unsigned b, unsigned c)
{
	for (int i = 0; i < 32; i += 8)
		c += (a >> i & 255u) * (b >> i & 255u);
	return c;
}
EMU_INLINE int __dp2a_lo(int a, int b, int c)
{
	return c + (short)a * (signed char)b + (short)(a >> 16) * (signed char)(b >> 8);
}
EMU_INLINE int __dp2a_hi(int a, int b, int c) { return __dp2a_lo(a, b >> 16, c); }

/* two or four lanes in a word */
#define EMU_SIMD(name, T, W, expression) \
	EMU_INLINE unsigned name(unsigned p, unsigned q) \
	{ \
		unsigned r = 0; \
		for (int i = 0; i < 32; i += W) { \
			int a = (T)(p >> i), b = (T)(q >> i); \
			(void)a; (void)b; \
			r |= ((unsigned)(expression) & (W == 8 ? 255u : 65535u)) << i; \
		} \
		return r; \
	}
EMU_SIMD(__vadd4, unsigned char, 8, a + b)
EMU_SIMD(__vsub4, unsigned char, 8, a - b)
EMU_SIMD(__vadd2, unsigned short, 16, a + b)
EMU_SIMD(__vsub2, unsigned short, 16, a - b)
EMU_SIMD(__vmaxs4, signed char, 8, a > b ? a : b)
EMU_SIMD(__vmins4, signed char, 8, a < b ? a : b)
EMU_SIMD(__vmaxu4, unsigned char, 8, a > b ? a : b)
EMU_SIMD(__vminu4, unsigned char, 8, a < b ? a : b)
EMU_SIMD(__vmaxs2, short, 16, a > b ? a : b)
EMU_SIMD(__vmins2, short, 16, a < b ? a : b)
EMU_SIMD(__vmaxu2, unsigned short, 16, a > b ? a : b)
EMU_SIMD(__vminu2, unsigned short, 16, a < b ? a : b)
EMU_SIMD(__vabsdiffu4, unsigned char, 8, a > b ? a - b : b - a)
EMU_SIMD(__vcmpeq4, unsigned char, 8, a == b ? 255 : 0)
EMU_SIMD(__vcmpeq2, unsigned short, 16, a == b ? 65535 : 0)
#undef EMU_SIMD

template <class To, class From> EMU_INLINE To emu_bits(From x)
{
	static_assert(sizeof(To) == sizeof(From), "sizes differ");
	To r;
	__builtin_memcpy(&r, &x, sizeof r);
	return r;
}
EMU_INLINE int __float_as_int(float x) { return emu_bits<int>(x); }
EMU_INLINE unsigned __float_as_uint(float x) { return emu_bits<unsigned>(x); }
EMU_INLINE float __int_as_float(int x) { return emu_bits<float>(x); }
EMU_INLINE float __uint_as_float(unsigned x) { return emu_bits<float>(x); }
EMU_INLINE long long __double_as_longlong(double x) { return emu_bits<long long>(x); }
EMU_INLINE double __longlong_as_double(long long x) { return emu_bits<double>(x); }
EMU_INLINE int __double2hiint(double x) { return (int)(emu_bits<long long>(x) >> 32); }
EMU_INLINE int __double2loint(double x) { return (int)emu_bits<long long>(x); }
EMU_INLINE double __hiloint2double(int hi, int lo)
{
	return emu_bits<double>((unsigned long long)(unsigned)hi << 32 | (unsigned)lo);
}

/* Rounding: 0 nearest even, 1 to zero, 2 up, 3 down. r is the nearest result, rest has the
 * sign of (exact - r). */
EMU_INLINE float emu_next(float x, float to) { return nextafterf(x, to); }
EMU_INLINE double emu_next(double x, double to) { return nextafter(x, to); }
template <int mode, class T> EMU_INLINE T emu_direct(T r, double rest)
{
	const T big = (T)__builtin_inf();
	if (__builtin_isnan(r) || mode == 0)
		return r;
	if (__builtin_isinf(r)) { /* overflow of finite operands: rest is finite and not zero */
		if (!(rest == rest) || rest == 0 || __builtin_isinf(rest))
			return r;
		bool keep = mode == 2 ? r > 0 : mode == 3 ? r < 0 : false;
		return keep ? r : emu_next(r, (T)0);
	}
	if (rest == 0)
		return r;
	if (mode == 2)
		return rest > 0 ? emu_next(r, big) : r;
	if (mode == 3)
		return rest < 0 ? emu_next(r, -big) : r;
	return (r > 0 && rest < 0) || (r < 0 && rest > 0) ? emu_next(r, (T)0) : r;
}
/* what a + b lost when it was rounded to s; hidden from -fassociative-math */
#if defined(__aarch64__)
#define EMU_OPAQUE(x) __asm__("" : "+w"(x))
#else
#define EMU_OPAQUE(x) __asm__("" : "+x"(x))
#endif
EMU_INLINE double emu_sum_rest(double a, double b, double s)
{
	EMU_OPAQUE(s);
	double bb = s - a;
	EMU_OPAQUE(bb);
	double aa = s - bb, rest = b - bb;
	EMU_OPAQUE(aa);
	aa = a - aa;
	EMU_OPAQUE(aa);
	return aa + rest;
}
template <int mode> EMU_INLINE float emu_fadd(float a, float b)
{
	double s = (double)a + b;
	float r = (float)s;
	double gap = __builtin_isinf(r) && !__builtin_isinf(s) ? (r > 0 ? -1.0 : 1.0) : s - r;
	return emu_direct<mode>(r, gap != 0 ? gap : emu_sum_rest(a, b, s));
}
template <int mode> EMU_INLINE float emu_fmul(float a, float b)
{
	double p = (double)a * b;
	float r = (float)p;
	return emu_direct<mode>(r, __builtin_isinf(r) && !__builtin_isinf(p) ? (r > 0 ? -1.0 : 1.0) : p - r);
}
template <int mode> EMU_INLINE float emu_ffma(float a, float b, float c)
{
	if (mode == 0)
		return fmaf(a, b, c);
	double p = (double)a * b, s = p + c;
	float r = fmaf(a, b, c);
	double gap = __builtin_isinf(r) && !__builtin_isinf(s) ? (r > 0 ? -1.0 : 1.0) : s - r;
	return emu_direct<mode>(r, gap != 0 ? gap : emu_sum_rest(p, c, s));
}
template <int mode> EMU_INLINE float emu_fdiv(float a, float b)
{
	float r = a / b;
	double rest = (double)a - (double)r * b;
	if (__builtin_isinf(r) && b != 0 && !__builtin_isinf(a))
		rest = r > 0 ? -1.0 : 1.0;
	else if (b < 0)
		rest = -rest;
	return emu_direct<mode>(r, rest);
}
template <int mode> EMU_INLINE float emu_fsqrt(float x)
{
	float r = sqrtf(x);
	return emu_direct<mode>(r, (double)x - (double)r * r);
}
#define EMU_ROUNDED(suffix, mode) \
	EMU_INLINE float __fadd_##suffix(float a, float b) { return emu_fadd<mode>(a, b); } \
	EMU_INLINE float __fsub_##suffix(float a, float b) { return emu_fadd<mode>(a, -b); } \
	EMU_INLINE float __fmul_##suffix(float a, float b) { return emu_fmul<mode>(a, b); } \
	EMU_INLINE float __fmaf_##suffix(float a, float b, float c) { return emu_ffma<mode>(a, b, c); } \
	EMU_INLINE float __fdiv_##suffix(float a, float b) { return emu_fdiv<mode>(a, b); } \
	EMU_INLINE float __frcp_##suffix(float a) { return emu_fdiv<mode>(1.0f, a); } \
	EMU_INLINE float __fsqrt_##suffix(float a) { return emu_fsqrt<mode>(a); } \
	EMU_INLINE float __double2float_##suffix(double x) \
	{ \
		float r = (float)x; \
		return emu_direct<mode>(r, __builtin_isinf(r) && !__builtin_isinf(x) ? (r > 0 ? -1.0 : 1.0) : x - r); \
	}
EMU_ROUNDED(rn, 0)
EMU_ROUNDED(rz, 1)
EMU_ROUNDED(ru, 2)
EMU_ROUNDED(rd, 3)
#undef EMU_ROUNDED
EMU_INLINE double __dadd_rn(double a, double b) { return a + b; }
EMU_INLINE double __dsub_rn(double a, double b) { return a - b; }
EMU_INLINE double __dmul_rn(double a, double b) { return a * b; }
EMU_INLINE double __ddiv_rn(double a, double b) { return a / b; }
EMU_INLINE double __drcp_rn(double a) { return 1.0 / a; }
EMU_INLINE double __dsqrt_rn(double a) { return sqrt(a); }
EMU_INLINE double __fma_rn(double a, double b, double c) { return fma(a, b, c); }

/* Float to integer: saturates, and NaN gives 0 (2^31 or 2^63 for the double forms on the GPU
 * differ by architecture; 0 here). */
EMU_INLINE float emu_rint_mode(float x, int mode)
{
	return mode == 0 ? rintf(x) : mode == 1 ? truncf(x) : mode == 2 ? ceilf(x) : floorf(x);
}
EMU_INLINE double emu_rint_mode(double x, int mode)
{
	return mode == 0 ? rint(x) : mode == 1 ? trunc(x) : mode == 2 ? ceil(x) : floor(x);
}
template <class I, class F> EMU_INLINE I emu_to_int(F x, int mode)
{
	const int bits = (int)sizeof(I) * 8;
	const bool is_signed = (I)-1 < (I)0;
	const I top = is_signed ? (I)(((I)1 << (bits - 2)) - 1 + ((I)1 << (bits - 2))) : (I)-1;
	const F limit = (F)(is_signed ? (bits == 32 ? 2147483648.0 : 9223372036854775808.0)
	                              : (bits == 32 ? 4294967296.0 : 18446744073709551616.0));
	F r = emu_rint_mode(x, mode);
	if (__builtin_isnan(x))
		return 0;
	if (r >= limit)
		return top;
	if (r < (is_signed ? -limit : (F)0))
		return is_signed ? (I)(-top - 1) : (I)0;
	return (I)r;
}
#define EMU_CONVERT(suffix, mode) \
	EMU_INLINE int __float2int_##suffix(float x) { return emu_to_int<int>(x, mode); } \
	EMU_INLINE unsigned __float2uint_##suffix(float x) { return emu_to_int<unsigned>(x, mode); } \
	EMU_INLINE long long __float2ll_##suffix(float x) { return emu_to_int<long long>(x, mode); } \
	EMU_INLINE unsigned long long __float2ull_##suffix(float x) \
	{ \
		return emu_to_int<unsigned long long>(x, mode); \
	} \
	EMU_INLINE int __double2int_##suffix(double x) { return emu_to_int<int>(x, mode); } \
	EMU_INLINE unsigned __double2uint_##suffix(double x) { return emu_to_int<unsigned>(x, mode); } \
	EMU_INLINE long long __double2ll_##suffix(double x) { return emu_to_int<long long>(x, mode); } \
	EMU_INLINE unsigned long long __double2ull_##suffix(double x) \
	{ \
		return emu_to_int<unsigned long long>(x, mode); \
	} \
	EMU_INLINE float __int2float_##suffix(int x) { return __double2float_##suffix((double)x); } \
	EMU_INLINE float __uint2float_##suffix(unsigned x) { return __double2float_##suffix((double)x); }
EMU_CONVERT(rn, 0)
EMU_CONVERT(rz, 1)
EMU_CONVERT(ru, 2)
EMU_CONVERT(rd, 3)
#undef EMU_CONVERT
EMU_INLINE float __ll2float_rn(long long x) { return (float)x; }
EMU_INLINE float __ull2float_rn(unsigned long long x) { return (float)x; }
EMU_INLINE double __int2double_rn(int x) { return (double)x; }
EMU_INLINE double __uint2double_rn(unsigned x) { return (double)x; }
EMU_INLINE double __ll2double_rn(long long x) { return (double)x; }
EMU_INLINE double __ull2double_rn(unsigned long long x) { return (double)x; }

/* Cache hints. Those that bypass the first-level cache are how blocks talk to each other: they
 * are real accesses each time. */
template <class T> struct emu_same { typedef T type; };
template <unsigned bytes> struct emu_word { static constexpr bool one = false; };
template <> struct emu_word<1> { static constexpr bool one = true; typedef unsigned char type; };
template <> struct emu_word<2> { static constexpr bool one = true; typedef unsigned short type; };
template <> struct emu_word<4> { static constexpr bool one = true; typedef unsigned type; };
template <> struct emu_word<8> { static constexpr bool one = true; typedef unsigned long type; };
template <class T> EMU_INLINE T emu_load_now(const T *p)
{
	if constexpr (emu_word<sizeof(T)>::one) {
		typedef typename emu_word<sizeof(T)>::type W;
		typedef W __attribute__((may_alias)) A;
		W w = __atomic_load_n((const A *)p, __ATOMIC_RELAXED);
		T r;
		__builtin_memcpy(&r, &w, sizeof r);
		return r;
	} else {
		__asm__ volatile("" ::: "memory");
		return *p;
	}
}
template <class T> EMU_INLINE void emu_store_now(T *p, T v)
{
	if constexpr (emu_word<sizeof(T)>::one) {
		typedef typename emu_word<sizeof(T)>::type W;
		typedef W __attribute__((may_alias)) A;
		W w;
		__builtin_memcpy(&w, &v, sizeof w);
		__atomic_store_n((A *)p, w, __ATOMIC_RELAXED);
	} else {
		*p = v;
		__asm__ volatile("" ::: "memory");
	}
}
template <class T> EMU_INLINE T __ldg(const T *p) { return *p; }
template <class T> EMU_INLINE T __ldca(const T *p) { return *p; }
template <class T> EMU_INLINE T __ldcs(const T *p) { return *p; }
template <class T> EMU_INLINE T __ldlu(const T *p) { return *p; }
template <class T> EMU_INLINE T __ldcg(const T *p) { return emu_load_now(p); }
template <class T> EMU_INLINE T __ldcv(const T *p) { return emu_load_now(p); }
template <class T> EMU_INLINE void __stwb(T *p, typename emu_same<T>::type v) { *p = v; }
template <class T> EMU_INLINE void __stcs(T *p, typename emu_same<T>::type v) { *p = v; }
template <class T> EMU_INLINE void __stcg(T *p, typename emu_same<T>::type v) { emu_store_now(p, v); }
template <class T> EMU_INLINE void __stwt(T *p, typename emu_same<T>::type v) { emu_store_now(p, v); }

#endif
