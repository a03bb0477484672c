// launch: types grid=2,2 block=16,2 args=o,bytes:24,i
// launch: fixed<3,float> grid=1 block=32 args=o,f32:2.5
// launch: lambda grid=2 block=64 args=o,i
// launch: hints grid=2 block=64 args=o,i,w
// launch: tables grid=1 block=32 args=o
// log: thread 3 of block 1: 1.50 ok
// Language: vector types, structs by value, templates, lambdas, constants, hints, printf.

#include <cuda_runtime.h>
#include <stdint.h>
#include <limits.h>

static __device__ void expect(unsigned *o, bool ok, unsigned where)
{
	atomicAdd(&o[1], 1u);
	if (!ok && atomicAdd(&o[0], 1u) == 0)
		o[2] = where;
}
struct params {
	unsigned char a[8];
	uint64_t b;
	unsigned c[2];
};

__global__ void types(unsigned *o, const __grid_constant__ params p, const uint4 *__restrict__ in)
{
	expect(o, p.a[5] == 5 && p.b == 0x0f0e0d0c0b0a0908ull && p.c[1] == 0x17161514u, 1);
	float4 f = make_float4(1, 2, 3, 4);
	int2 i = make_int2(-1, 5);
	double2 d{1.5, 2.5};
	uchar4 u = make_uchar4(1, 2, 3, 255);
	expect(o, f.w == 4.0f && i.x == -1 && d.y == 2.5 && u.w == 255, 2);
	expect(o, sizeof(float4) == 16 && alignof(float4) == 16 && sizeof(float3) == 12 && alignof(int2) == 8, 3);
	expect(o, sizeof(long long) == 8 && sizeof(dim3) == 12 && INT_MAX == 2147483647 && warpSize == 32, 4);
	uint4 v = in[threadIdx.x];
	expect(o, reinterpret_cast<const unsigned *>(in)[threadIdx.x * 4 + 2] == v.z, 5);
	dim3 g = gridDim, q(7);
	expect(o, g.x == 2 && g.y == 2 && g.z == 1 && q.y == 1, 6);
	if (blockIdx.x == 1 && blockIdx.y == 0 && threadIdx.x == 3 && threadIdx.y == 0)
		printf("thread %d of block %u: %.2f %s\n", (int)threadIdx.x, blockIdx.x, 1.5f, "ok");
}

template <int N, typename T> __global__ void __launch_bounds__(32, 1) fixed(unsigned *o, T x)
{
	T sum = 0;
#pragma unroll
	for (int k = 0; k < N; k++)
		sum += x;
	if constexpr (N == 3)
		expect(o, sum == (T)7.5, 7);
}

template <class F> static __device__ __forceinline__ inline auto apply(F f, unsigned x) { return f(x) + f(x + 1); }

static __device__ __noinline__ unsigned twice(unsigned x) { return x * 2; }

__global__ void lambda(unsigned *o, const unsigned *in)
{
	unsigned base = in[threadIdx.x];
	auto add = [base] __device__(unsigned k) { return base + k; };
	auto by_reference = [&](unsigned k) { return twice(base) + k; };
	expect(o, apply(add, 1u) == 2 * base + 3 && apply(by_reference, 0u) == 4 * base + 1, 8);
}

__global__ void hints(unsigned *o, const unsigned *in, unsigned *w)
{
	unsigned i = blockIdx.x * 64 + threadIdx.x, v = in[i];
	expect(o, __ldg(in + i) == v && __ldcg(in + i) == v && __ldcs(in + i) == v && __ldca(in + i) == v && __ldcv(in + i) == v && __ldlu(in + i) == v, 9);
	float4 f = __ldg(reinterpret_cast<const float4 *>(in) + threadIdx.x);
	expect(o, __float_as_uint(f.y) == in[threadIdx.x * 4 + 1], 10);
	__stcg(w + i, v);
	__stcs(w + 200 + i, v);
	__stwb(w + 400 + i, v);
	__stwt(w + 600 + i, v);
	expect(o, w[i] == v && w[200 + i] == v && w[400 + i] == v && w[600 + i] == v, 11);
	long long t0 = clock64();
	__nanosleep(1);
	expect(o, clock64() >= t0 && __smid() < 4 && __isGlobal(w) && !__isShared(w), 12);
}

__constant__ float weights[4] = {0.5f, 1.5f, 2.5f, 3.5f};
__constant__ const int powers[3] = {1, 10, 100};
static __constant__ unsigned char small[2] = {7, 9};
__device__ const float table[3] = {1.0f, 2.0f, 3.0f};
constexpr int square(int x) { return x * x; }

__global__ void tables(unsigned *o)
{
	expect(o, weights[threadIdx.x & 3] == 0.5f + (threadIdx.x & 3) && powers[2] == 100 && small[1] == 9, 13);
	expect(o, table[threadIdx.x % 3] == 1.0f + threadIdx.x % 3 && square(7) == 49, 14);
	static const int inner[2] = {4, 5};
	expect(o, inner[threadIdx.x & 1] == 4 + (int)(threadIdx.x & 1), 15);
}
