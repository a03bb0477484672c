/*
 * rmsnorm: y[r][h] = x[r][h] / sqrt(mean_h(x[r][h]^2) + eps) * w[h], bf16 in and out, fp32 inside.
 *
 * A row is read once: blockDim.x threads (a multiple of 32) keep up to ITEMS vectors of eight
 * elements each in registers, whatever does not fit is read again. The plan chooses blockDim.x by
 * the row's length and, with few rows, makes it larger; blockDim.y rows share a block.
 * EARLY 1 loads w before the sum is complete. HINT 1 marks x and y as used once.
 */
#include <cuda_bf16.h>

#if HINT == 0
#define LOAD(p) (*(p))
#define STORE(p, v) (*(p) = (v))
#else
#define LOAD(p) __ldcs(p)
#define STORE(p, v) __stcs(p, v)
#endif

__device__ static float low(unsigned v)
{
	return __uint_as_float(v << 16);
}

__device__ static float high(unsigned v)
{
	return __uint_as_float(v & 0xffff0000u);
}

__device__ static float squares(uint4 v)
{
	float a = low(v.x) * low(v.x) + high(v.x) * high(v.x);
	float b = low(v.y) * low(v.y) + high(v.y) * high(v.y);
	float c = low(v.z) * low(v.z) + high(v.z) * high(v.z);
	float d = low(v.w) * low(v.w) + high(v.w) * high(v.w);
	return (a + b) + (c + d);
}

__device__ static unsigned scaled2(unsigned v, unsigned w, float scale)
{
	__nv_bfloat162 r = __floats2bfloat162_rn(low(v) * scale * low(w), high(v) * scale * high(w));
	return (unsigned)__bfloat16_as_ushort(r.x) | (unsigned)__bfloat16_as_ushort(r.y) << 16;
}

__device__ static uint4 scaled(uint4 v, uint4 w, float scale)
{
	return make_uint4(scaled2(v.x, w.x, scale), scaled2(v.y, w.y, scale), scaled2(v.z, w.z, scale),
			  scaled2(v.w, w.w, scale));
}

/* Sum over the blockDim.x threads of a row; all threads of the block take part. */
__device__ static float row_sum(float s)
{
	__shared__ float part[32];
	int warps = blockDim.x / 32, warp = threadIdx.y * warps + threadIdx.x / 32;

#pragma unroll
	for (int d = 16; d > 0; d /= 2)
		s += __shfl_xor_sync(0xffffffffu, s, d);
	if (warps == 1)
		return s;
	if (threadIdx.x % 32 == 0)
		part[warp] = s;
	__syncthreads();
	s = (int)(threadIdx.x % 32) < warps ? part[threadIdx.y * warps + threadIdx.x % 32] : 0.0f;
#pragma unroll
	for (int d = 16; d > 0; d /= 2)
		s += __shfl_xor_sync(0xffffffffu, s, d);
	return s;
}

extern "C" __global__ void __launch_bounds__(1024)
rmsnorm(const __nv_bfloat16 *__restrict__ x, const __nv_bfloat16 *__restrict__ w,
	__nv_bfloat16 *__restrict__ y, int rows, int h, float eps)
{
	int row = blockIdx.x * blockDim.y + threadIdx.y, n = h / 8, step = blockDim.x;
	int live = row < rows;
	const uint4 *in = (const uint4 *)x + (long long)row * n;
	const uint4 *gain = (const uint4 *)w;
	uint4 *out = (uint4 *)y + (long long)row * n;
	uint4 v[ITEMS];
	float s = 0.0f;

	if (!live)
		n = 0;
#pragma unroll
	for (int i = 0; i < ITEMS; i++) {
		int at = threadIdx.x + i * step;
		v[i] = make_uint4(0, 0, 0, 0);
		if (at < n)
			v[i] = LOAD(in + at);
	}
#if EARLY
	uint4 g[ITEMS];
#pragma unroll
	for (int i = 0; i < ITEMS; i++) {
		int at = threadIdx.x + i * step;
		g[i] = make_uint4(0, 0, 0, 0);
		if (at < n)
			g[i] = __ldg(gain + at);
	}
#endif
#pragma unroll
	for (int i = 0; i < ITEMS; i++)
		s += squares(v[i]);
#pragma unroll 1
	for (int at = threadIdx.x + ITEMS * step; at < n; at += step)
		s += squares(in[at]);

	float scale = rsqrtf(row_sum(s) / (float)h + eps);

#pragma unroll
	for (int i = 0; i < ITEMS; i++) {
		int at = threadIdx.x + i * step;
		if (at < n) {
#if EARLY
			STORE(out + at, scaled(v[i], g[i], scale));
#else
			STORE(out + at, scaled(v[i], __ldg(gain + at), scale));
#endif
		}
	}
#pragma unroll 1
	for (int at = threadIdx.x + ITEMS * step; at < n; at += step)
		STORE(out + at, scaled(in[at], __ldg(gain + at), scale));
}
