/*
 * probe.cu - what a kernel could keep from one rep to the next, and what it could reach, tried from the inside.
 *
 * Each entry: out[2] says what to do (0 leave marks, 1 look for them); out[0] counts marks found, out[1] words looked
 * at. Entries that show addresses write them from out[4] on.
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

static __device__ __forceinline__ u32 shared_word(u32 at)
{
	u32 v;
	asm volatile("ld.shared.u32 %0, [%1];" : "=r"(v) : "r"(at) : "memory");
	return v;
}

static __device__ __forceinline__ u32 local_word(u32 at)
{
	u32 v;
	asm volatile("ld.local.u32 %0, [%1];" : "=r"(v) : "r"(at) : "memory");
	return v;
}

static __device__ void found(u32 *out, u32 n, u32 seen)
{
	if (n)
		atomicAdd(out, n);
	atomicAdd(out + 1, seen);
}

/* The first KiB of a block's shared memory belongs to the system; is it kept? `words`: how many. */
ENTRY(reserved_shared)
{
	u32 look = out[2], n = 0;
	for (u32 i = threadIdx.x; i < (u32)words; i += blockDim.x) {
		if (!look)
			asm volatile("st.shared.u32 [%0], %1;" ::"r"(4 * i), "r"(mark(i)) : "memory");
		else
			n += shared_word(4 * i) == mark(i);
	}
	found(out, n, 1);
}

/* Local memory without a variable in it, up to `words`. */
ENTRY(local_none)
{
	u32 look = out[2], n = 0;
	for (u32 i = 0; i < (u32)words; i++) {
		if (!look)
			asm volatile("st.local.u32 [%0], %1;" ::"r"(4 * i), "r"(mark(i)) : "memory");
		else
			n += local_word(4 * i) == mark(i);
	}
	found(out, n, 1);
}

/* A frame of 64 bytes, and the bytes from 256 on: more than is scrubbed for such a frame. */
ENTRY(local_beyond)
{
	volatile u32 a[16];
	u32 look = out[2], n = 0;
	for (u32 i = 0; i < 16; i++)
		a[i] = i + look;
	for (u32 i = 64; i < (u32)words; i++) {
		if (!look)
			asm volatile("st.local.u32 [%0], %1;" ::"r"(4 * i), "r"(mark(i)) : "memory");
		else
			n += local_word(4 * i) == mark(i);
	}
	if (a[look & 15] == 77)
		n = 0;
	found(out, n, 1);
}

/* Memory taken from the stack at run time. */
ENTRY(stack_taken)
{
	u32 look = out[2], n = 0;
	u64 p;
	asm volatile("{ .reg .u64 t; alloca.u64 t, %1, 16; cvta.local.u64 %0, t; }" : "=l"(p) : "l"((u64)words * 4));
	volatile u32 *a = (volatile u32 *)p;
	for (u32 i = 0; i < (u32)words; i++) {
		if (!look)
			a[i] = mark(i);
		else
			n += a[i] == mark(i);
	}
	found(out, n, 1);
}

/* The same by a function that calls itself: no frame of the entry's. */
static __device__ __noinline__ u32 deep(u32 *out, int depth, u32 look)
{
	volatile u32 a[32];
	u32 n = 0;
	for (u32 i = 0; i < 32; i++) {
		if (!look)
			a[i] = mark(i);
		else
			n += a[i] == mark(i);
	}
	if (depth > 0)
		n += deep(out, depth - 1, look);
	return n + (a[depth & 31] == 77);
}

ENTRY(calls_itself)
{
	found(out, deep(out, words, out[2]), 1);
}

/* Module memory: `words` words past a variable, a constant, a parameter. */
__device__ u32 variable[4];
__constant__ u32 fixed[64] = {1, 2, 3};

static __device__ void slack(u32 *out, volatile u32 *p)
{
	u32 look = out[2], n = 0;
	for (u32 i = threadIdx.x; i < 64; i += blockDim.x) {
		if (!look)
			p[i] = mark(i);
		else
			n += p[i] == mark(i);
	}
	found(out, n, 64);
}

ENTRY(module_slack)
{
	slack(out, variable + words);
}

ENTRY(constant_slack)
{
	u64 at;
	asm volatile("{ .reg .u64 t; mov.u64 t, fixed; cvta.const.u64 %0, t; }" : "=l"(at));
	slack(out, (volatile u32 *)at + words);
}

ENTRY(parameter_slack)
{
	u64 at;
	asm volatile("{ .reg .u64 t; mov.b64 t, parameter_slack_param_0; cvta.param.u64 %0, t; }" : "=l"(at));
	slack(out, (volatile u32 *)at + words);
}

/* A constant, by its address. */
ENTRY(constant)
{
	u64 at;
	u32 look = out[2], n = 0;
	asm volatile("{ .reg .u64 t; mov.u64 t, fixed; cvta.const.u64 %0, t; }" : "=l"(at));
	volatile u32 *p = (volatile u32 *)at;
	for (u32 i = threadIdx.x; i < 64; i += blockDim.x) {
		if (!look)
			p[i] = mark(i);
		else
			n += fixed[i] == mark(i) || p[i] == mark(i);
	}
	found(out, n, 64);
}

extern "C" __device__ __noinline__ u32 victim(u32 x)
{
	u32 r;
	asm volatile("mov.u32 %0, 0x5eed1234;" : "=r"(r));
	return r + (x & 0);
}

/* Code: read it, write back what is there, change a constant in it. `words`: 0 read, 1 write back, 2 change. */
ENTRY(code)
{
	u64 at;
	asm volatile("{ .reg .u64 t; mov.u64 t, victim; mov.u64 %0, t; }" : "=l"(at));
	u32 was = victim(out[3]);
	volatile u32 *p = (volatile u32 *)at;
	out[4] = (u32)at;
	out[5] = (u32)(at >> 32);
	out[6] = was;
	if (out[2])
		return;
	for (u32 i = 0; i < 32; i++) {
		u32 v = p[i];
		out[8 + i] = v;
		if (words == 1 || (words == 2 && v == 0x5eed1234u))
			p[i] = words == 2 ? 0x0badf00du : v;
	}
	out[7] = 1;
}

/* Where things lie: a variable, code, this buffer. */
ENTRY(places)
{
	u64 at;
	asm volatile("{ .reg .u64 t; mov.u64 t, victim; mov.u64 %0, t; }" : "=l"(at));
	out[4] = (u32)(u64)variable;
	out[5] = (u32)((u64)variable >> 32);
	out[6] = (u32)at;
	out[7] = (u32)(at >> 32);
	out[8] = victim(out[3]);
	variable[0] = 1;
}

/* Launches that may overlap: the first takes its time and lets the next begin at once, the next does nothing. */
ENTRY(early_long)
{
	asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
	for (int i = 0; i < words; i++)
		asm volatile("nanosleep.u32 1000;");
	if (threadIdx.x == 0 && blockIdx.x == 0)
		out[0] = 0x600d;
}
ENTRY(early_nothing)
{
}

/* 32 KiB a block by bulk copies that nobody waits for (words 0), or somebody does. */
ENTRY(bulk)
{
	__shared__ __align__(128) u32 tile[8192];
	for (u32 i = threadIdx.x; i < 8192; i += blockDim.x)
		tile[i] = mark(i);
	asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
	__syncthreads();
	if (threadIdx.x)
		return;
	u64 to;
	asm("cvta.to.global.u64 %0, %1;" : "=l"(to) : "l"(out + 1024 + blockIdx.x * 8192));
	asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 32768;" ::"l"(to),
		     "r"((u32)__cvta_generic_to_shared(tile)) : "memory");
	asm volatile("cp.async.bulk.commit_group;" ::: "memory");
	if (words)
		asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

/* Write to an address: out[4], out[5]. */
ENTRY(poke)
{
	u64 at = out[4] | (u64)out[5] << 32;
	*(volatile u32 *)at = 0x5eed;
	out[7] = 1;
}

/* Every window finds its variable as it was compiled. */
__device__ u32 counter = 3;
ENTRY(counts)
{
	out[0] += counter != 3;
	out[1] += 1;
	counter = words;
}
ENTRY(counts_not)
{
	out[0] += counter != 3;
	out[1] += 1;
}
