/*
 * rep.cu - stand-ins for the kernels of stages/gpu/rep.cu, same names and parameters.
 *
 * A host has no shared or local memory of SMs to scrub, and tensor cores have no host build: those
 * kernels do what their callers can see, no more. The rest is the same arithmetic.
 *
 * SPDX-License-Identifier: MIT
 */
typedef unsigned int u32;
typedef unsigned long long u64;

static __device__ u32 mix(u64 x)
{
	x ^= x >> 31;
	x *= 0x9E3779B97F4A7C15ull;
	x ^= x >> 29;
	x *= 0xBF58476D1CE4E5B9ull;
	return (u32)(x >> 32);
}

static __device__ u64 lane(void)
{
	return blockIdx.x * (u64)blockDim.x + threadIdx.x;
}

extern "C" __global__ void ts_null(void)
{
}

extern "C" __global__ void ts_canary(u32 *out, u32 n, u64 key)
{
	u64 i = lane();

	if (i < n)
		out[i] = mix(key + i);
}

extern "C" __global__ void ts_scrub_shared(u64 seed, u32 words, u64 *arrived)
{
	if (threadIdx.x == 0)
		atomicAdd(arrived, 1ull);
}

#define SCRUB_LOCAL(bytes) \
	extern "C" __global__ void ts_scrub_local_##bytes(u64 seed, u64 *arrived, u32 *sink) \
	{ \
		if (threadIdx.x == 0) \
			atomicAdd(arrived, 1ull); \
	}
SCRUB_LOCAL(256)
SCRUB_LOCAL(1024)
SCRUB_LOCAL(4096)
SCRUB_LOCAL(16384)

extern "C" __global__ void ts_same(const unsigned char *p, const unsigned char *q, u64 n, u32 *changed)
{
	for (u64 i = lane(); i < n; i += gridDim.x * (u64)blockDim.x)
		if (p[i] != q[i])
			*changed = 1;
}

extern "C" __global__ void ts_read(const uint4 *p, u64 n, u32 *sink)
{
	u32 a = 0;

	for (u64 i = lane(); i < n; i += gridDim.x * (u64)blockDim.x) {
		uint4 u = p[i];
		a ^= u.x ^ u.y ^ u.z ^ u.w;
	}
	if (a == 0x12345679u)
		*sink = a;
}

extern "C" __global__ void ts_write(uint4 *p, u64 n, u32 v)
{
	for (u64 i = lane(); i < n; i += gridDim.x * (u64)blockDim.x)
		p[i] = make_uint4(v, (u32)i, v ^ (u32)i, 1);
}

extern "C" __global__ void ts_copy(const uint4 *p, uint4 *q, u64 n)
{
	for (u64 i = lane(); i < n; i += gridDim.x * (u64)blockDim.x)
		q[i] = p[i];
}

/* As long as this would take a GPU of 60 (fp32) and 900 (tensor cores) TFLOP/s. */
extern "C" __global__ void ts_fma(u32 rounds, float x, float *sink)
{
	if (lane() == 0)
		__nanosleep((u32)((double)gridDim.x * blockDim.x * rounds * 32 / 60e3));
}

#define MMA(name) \
	extern "C" __global__ void name(u32 rounds, float *sink, u32 *flop) \
	{ \
		if (lane() == 0) { \
			*flop = 2 * 2 * 64 * 128 * 16 * 4; \
			__nanosleep((u32)((double)gridDim.x * rounds * *flop / 900e3)); \
		} \
	}
MMA(ts_mma_bf16)
MMA(ts_mma_fp16)
