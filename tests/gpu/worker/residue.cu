/*
 * residue.cu - kernels for check.c: write all that a launch may leave behind, and count what a later one finds.
 *
 * out[0]: words found that a *_write kernel of another launch wrote; out[1]: words looked at.
 *
 * SPDX-License-Identifier: MIT
 */
typedef unsigned int u32;
typedef unsigned long long u64;

#define ENTRY(name) extern "C" __global__ void name(u32 *out, int words)

static __device__ __forceinline__ u32 mark(u32 i)
{
	return (i * 2654435761u) ^ 0x7e57da7au;
}

ENTRY(shared_write)
{
	extern __shared__ u32 s[];
	u32 base = (u32)__cvta_generic_to_shared(s);
	for (u32 i = threadIdx.x; i < (u32)words; i += blockDim.x)
		asm volatile("st.shared.u32 [%0], %1;" ::"r"(base + 4 * i), "r"(mark(i)) : "memory");
}

ENTRY(shared_read)
{
	extern __shared__ u32 s[];
	u32 base = (u32)__cvta_generic_to_shared(s), n = 0, seen = 0, v;
	for (u32 i = threadIdx.x; i < (u32)words; i += blockDim.x, seen++) {
		asm volatile("ld.shared.u32 %0, [%1];" : "=r"(v) : "r"(base + 4 * i) : "memory");
		n += v == mark(i);
	}
	atomicAdd(out, n);
	atomicAdd(out + 1, seen);
}

#define LOCAL(words_) \
	ENTRY(local_write_##words_) \
	{ \
		volatile u32 a[words_]; \
		_Pragma("unroll 1") for (u32 i = 0; i < words_; i++) a[i] = mark(i); \
		if (a[(u32)words & 63] == 1u) \
			out[2] = 1; \
	} \
	ENTRY(local_read_##words_) \
	{ \
		volatile u32 a[words_]; \
		u32 n = 0; \
		_Pragma("unroll 1") for (u32 i = 0; i < words_; i++) n += a[i] == mark(i); \
		atomicAdd(out, n); \
		atomicAdd(out + 1, (u32)words_); \
	}
LOCAL(16)
LOCAL(64)
LOCAL(256)
LOCAL(1024)
LOCAL(4096)

/* Names that the driver may not find: in a namespace, in a function, of a template. */
namespace deep
{
static __device__ u32 inner = 12;
}
static __device__ u32 outer;
template <class T> static __device__ T of_type = 5;

/* out[0]: what changed since the module was loaded. */
ENTRY(globals)
{
	static __device__ u32 in_function = 3;
	if (blockIdx.x || threadIdx.x)
		return;
	out[0] = (deep::inner != 12) + 10 * (outer != 0) + 100 * (in_function != 3) + 1000 * (of_type<u32> != 5);
	out[1] = 1;
	deep::inner++;
	outer++;
	in_function++;
	of_type<u32>++;
}

ENTRY(trap)
{
	if (words)
		asm volatile("trap;");
}

ENTRY(hang)
{
	while (*(volatile u32 *)out != 0x12345u)
		;
}

/* The cluster that a launch really has. */
ENTRY(cluster)
{
	u32 n;
	asm volatile("mov.u32 %0, %%cluster_nctaid.x;" : "=r"(n));
	if (threadIdx.x == 0 && blockIdx.x == 0) {
		out[0] = n;
		out[1] = 1;
	}
}
