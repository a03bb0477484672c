/*
 * rep.cu - the device code of the worker (stages/roles/worker.c): what stands around a candidate's
 * launches, and the kernels that find out how fast this GPU is.
 *
 * Compiled by the box with NVRTC, so no headers. Every kernel is ours and trusted; none is told
 * anything secret.
 *
 *   ts_canary               is this GPU healthy?
 *   ts_scrub_shared         all shared memory of all SMs holds words of the seed
 *   ts_scrub_local_N        local memory of all resident threads, frames of N bytes
 *   ts_same                 has a launch changed its module's variables?
 *   ts_read                 read flush of L2, read probe, read ceiling
 *   ts_write, ts_copy, ts_fma, ts_mma_bf16, ts_mma_fp16
 *                           ceilings
 *   ts_null                 nothing
 *
 * SPDX-License-Identifier: MIT
 */
typedef unsigned int u32;
typedef unsigned long long u64;

static __device__ __forceinline__ u32 mix(u64 x)
{
	x ^= x >> 31;
	x *= 0x9E3779B97F4A7C15ull;
	x ^= x >> 29;
	x *= 0xBF58476D1CE4E5B9ull;
	return (u32)(x >> 32);
}

static __device__ __forceinline__ u64 lane(void)
{
	return blockIdx.x * (u64)blockDim.x + threadIdx.x;
}

/* Every block waits for all others, so each SM holds its share at the same time: a block that came
 * late to an SM that had one already would leave another SM as it was. `arrived` is zero at the start
 * of a rep and grows from there; each kernel has its own. */
static __device__ void together(u64 *arrived)
{
	__syncthreads();
	if (threadIdx.x == 0) {
		u64 n = gridDim.x, mine = atomicAdd(arrived, 1ull), all = (mine / n + 1) * n;

		while (*(volatile u64 *)arrived < all)
			;
	}
	__syncthreads();
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

/* One block an SM: it asks for all the shared memory that a block may have. */
extern "C" __global__ void __launch_bounds__(1024) ts_scrub_shared(u64 seed, u32 words, u64 *arrived)
{
	extern __shared__ u32 scrubbed[];
	u32 base = (u32)__cvta_generic_to_shared(scrubbed);

	for (u32 i = threadIdx.x; i < words; i += blockDim.x)
		asm volatile("st.shared.u32 [%0], %1;" ::"r"(base + 4 * i), "r"(mix(seed + i)) : "memory");
	together(arrived);
}

/* As many blocks as fit at once: local memory belongs to the slots of resident threads. */
#define SCRUB_LOCAL(bytes) \
	extern "C" __global__ void __launch_bounds__(256) ts_scrub_local_##bytes(u64 seed, u64 *arrived, u32 *sink) \
	{ \
		volatile u32 frame[bytes / 4]; \
		_Pragma("unroll 1") for (u32 i = 0; i < bytes / 4; i++) frame[i] = mix(seed + i); \
		together(arrived); \
		if (frame[(u32)seed & 15] == 1u && seed == 3) \
			*sink = frame[1]; \
	}
SCRUB_LOCAL(256)
SCRUB_LOCAL(1024)
SCRUB_LOCAL(4096)
SCRUB_LOCAL(16384)

/* ---- memory ---- */

/* Is the memory as it was? *changed is never zero again when not. */
extern "C" __global__ void ts_same(const unsigned char *p, const unsigned char *q, u64 n, u32 *changed)
{
	for (u64 i = lane(); i < n; i += gridDim.x * (u64)blockDim.x)
		if (p[i] != q[i])
			*changed = 1;
}

/* Plain loads: persisting lines are reset by the host before the launch (h200-facts.md 2). `times` over
 * the same buffer would find it in the cache, so the buffer is as large as the flush. */
extern "C" __global__ void __launch_bounds__(512) ts_read(const uint4 *p, u64 n, u32 *sink)
{
	u64 i = lane(), step = gridDim.x * (u64)blockDim.x;
	u32 a = 0;

	for (; i + 3 * step < n; i += 4 * step) {
		uint4 u = p[i], v = p[i + step], w = p[i + 2 * step], x = p[i + 3 * step];
		a ^= u.x ^ u.y ^ u.z ^ u.w ^ v.x ^ v.y ^ v.z ^ v.w ^ w.x ^ w.y ^ w.z ^ w.w ^ x.x ^ x.y ^ x.z ^ x.w;
	}
	for (; i < n; i += step) {
		uint4 u = p[i];
		a ^= u.x ^ u.y ^ u.z ^ u.w;
	}
	if (a == 0x12345679u)
		*sink = a;
}

extern "C" __global__ void __launch_bounds__(512) ts_write(uint4 *p, u64 n, u32 v)
{
	for (u64 i = lane(); i < n; i += gridDim.x * (u64)blockDim.x)
		p[i] = make_uint4(v, (u32)i, v ^ (u32)i, 1);
}

extern "C" __global__ void __launch_bounds__(512) ts_copy(const uint4 *p, uint4 *q, u64 n)
{
	u64 i = lane(), step = gridDim.x * (u64)blockDim.x;

	for (; i + 3 * step < n; i += 4 * step) {
		uint4 u = p[i], v = p[i + step], w = p[i + 2 * step], x = p[i + 3 * step];
		q[i] = u;
		q[i + step] = v;
		q[i + 2 * step] = w;
		q[i + 3 * step] = x;
	}
	for (; i < n; i += step)
		q[i] = p[i];
}

/* ---- arithmetic ---- */

extern "C" __global__ void __launch_bounds__(512) ts_fma(u32 rounds, float x, float *sink)
{
	float a[16];

#pragma unroll
	for (int i = 0; i < 16; i++)
		a[i] = x + (float)(threadIdx.x + (u32)i);
	for (u32 r = 0; r < rounds; r++)
#pragma unroll
		for (int i = 0; i < 16; i++)
			a[i] = fmaf(a[i], x, 0.5f);
	float s = 0;
#pragma unroll
	for (int i = 0; i < 16; i++)
		s += a[i];
	if (s == 1.25f)
		*sink = s;
}

/* Tensor cores: products of tiles that stay in shared memory. The numbers are random, of magnitude 0.5
 * to 1: zeros would draw less power and run faster than any real product. FLOP of one block and round:
 * ts_mma_flop. */
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define MMA_READY asm volatile("fence.proxy.async;" ::: "memory")
#define F8(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), \
	"+f"(d[i + 6]), "+f"(d[i + 7])
#define WGMMA(type) \
	asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32." type "." type " " \
		     "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24," \
		     "%25,%26,%27,%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47," \
		     "%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63}, %64, %65, 1, 1, 1, 0, 0;" \
		     : F8(0), F8(8), F8(16), F8(24), F8(32), F8(40), F8(48), F8(56) \
		     : "l"(da), "l"(db))
/* A tile without swizzle: blocks of 8 rows by 16 bytes, 128 bytes each. */
static __device__ __forceinline__ u64 tile(u32 at)
{
	return (u64)((at & 0x3ffff) >> 4) | (u64)(128 >> 4) << 16 | (u64)(256 >> 4) << 32;
}
#define MMA_BODY(type) \
	float d[64]; \
	_Pragma("unroll") for (int i = 0; i < 64; i++) d[i] = 0; \
	for (u32 r = 0; r < rounds; r++) { \
		asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); \
		_Pragma("unroll") for (u32 k = 0; k < 4; k++) { \
			u64 da = tile(base + 2048 * k + 8192 * (threadIdx.x / 128)), db = tile(base + 16384 + 4096 * k); \
			WGMMA(type); \
		} \
		asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); \
		asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory"); \
	}
enum { MMA_SUMS = 64, MMA_FLOP = 2 * 2 * 64 * 128 * 16 * 4 };
#elif __CUDA_ARCH__ < 800
/* no such tensor cores: no figure */
#define MMA_READY
#define MMA_BODY(type) \
	float d[1] = {(float)(rounds + tiles[threadIdx.x])};
enum { MMA_SUMS = 1, MMA_FLOP = 0 };
#else
#define MMA_READY
#define MMA_BODY(type) \
	float d[64]; \
	u32 a0 = mix(threadIdx.x) & mask | one, a1 = mix(threadIdx.x + 1000u) & mask | one; \
	_Pragma("unroll") for (int i = 0; i < 64; i++) d[i] = 0; \
	for (u32 r = 0; r < rounds; r++) \
		_Pragma("unroll") for (int i = 0; i < 64; i += 4) \
			asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." type "." type ".f32 {%0,%1,%2,%3}, " \
				     "{%4,%5,%4,%5}, {%5,%4}, {%0,%1,%2,%3};" \
				     : "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]) \
				     : "r"(a0), "r"(a1));
enum { MMA_SUMS = 64, MMA_FLOP = 8 * 16 * 2 * 16 * 8 * 16 };
#endif

/* 256 threads. `one` is the pattern of 0.5 in both halves, `mask` keeps signs and fractions. */
#define MMA(name, type, one_, mask_) \
	extern "C" __global__ void __launch_bounds__(256) name(u32 rounds, float *sink, u32 *flop) \
	{ \
		__shared__ __align__(1024) u32 tiles[8192]; \
		const u32 one = one_, mask = mask_; \
		u32 base = (u32)__cvta_generic_to_shared(tiles); \
		for (u32 i = threadIdx.x; i < 8192; i += 256) \
			tiles[i] = (mix(i) & mask) | one; \
		MMA_READY; \
		__syncthreads(); \
		if (lane() == 0) \
			*flop = MMA_FLOP; \
		MMA_BODY(type) \
		float s = 0; \
		_Pragma("unroll") for (int i = 0; i < MMA_SUMS; i++) s += d[i]; \
		if (s == 1.2345f) \
			*sink = s + (float)base; \
	}
MMA(ts_mma_bf16, "bf16", 0x3f003f00u, 0x807f807fu)
MMA(ts_mma_fp16, "f16", 0x38003800u, 0x83ff83ffu)
