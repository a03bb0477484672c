/* Vector types and their make_ functions.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef EMU_TYPES_H
#define EMU_TYPES_H

#define EMU_VECTOR(T, name, a1, a2, a4) \
	struct alignas(a1) name##1 { T x; }; \
	struct alignas(a2) name##2 { T x, y; }; \
	struct name##3 { T x, y, z; }; \
	struct alignas(a4) name##4 { T x, y, z, w; }; \
	EMU_INLINE constexpr name##1 make_##name##1(T x) { return name##1{x}; } \
	EMU_INLINE constexpr name##2 make_##name##2(T x, T y) { return name##2{x, y}; } \
	EMU_INLINE constexpr name##3 make_##name##3(T x, T y, T z) { return name##3{x, y, z}; } \
	EMU_INLINE constexpr name##4 make_##name##4(T x, T y, T z, T w) { return name##4{x, y, z, w}; }

EMU_VECTOR(signed char, char, 1, 2, 4)
EMU_VECTOR(unsigned char, uchar, 1, 2, 4)
EMU_VECTOR(short, short, 2, 4, 8)
EMU_VECTOR(unsigned short, ushort, 2, 4, 8)
EMU_VECTOR(int, int, 4, 8, 16)
struct alignas(4) uint1 { unsigned x; };
struct alignas(8) uint2 { unsigned x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
EMU_INLINE constexpr uint1 make_uint1(unsigned x) { return uint1{x}; }
EMU_INLINE constexpr uint2 make_uint2(unsigned x, unsigned y) { return uint2{x, y}; }
EMU_INLINE constexpr uint3 make_uint3(unsigned x, unsigned y, unsigned z) { return uint3{x, y, z}; }
EMU_INLINE constexpr uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w)
{
	return uint4{x, y, z, w};
}
EMU_VECTOR(long, long, 8, 16, 16)
EMU_VECTOR(unsigned long, ulong, 8, 16, 16)
EMU_VECTOR(long long, longlong, 8, 16, 16)
EMU_VECTOR(unsigned long long, ulonglong, 8, 16, 16)
EMU_VECTOR(float, float, 4, 8, 16)
EMU_VECTOR(double, double, 8, 16, 16)
#undef EMU_VECTOR

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;

/* accepted as parameter types that host code of other projects mentions */
typedef struct CUstream_st *cudaStream_t;
typedef int cudaError_t;

#endif
