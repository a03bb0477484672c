/*
 * add.cu - candidates for tests of the GPU path: out[i] = x[i] + y[i], done well and badly.
 *
 * One text for both sides: NVRTC makes the cubin of it, g++ the host build that the fake driver runs.
 * `us` is how long a kernel takes on the fake driver's clock (__nanosleep of one thread), so a plan can
 * make it a tunable.
 *
 * SPDX-License-Identifier: MIT
 */
#define ENTRY(name) \
	extern "C" __global__ void name(const float *x, const float *y, float *out, int n, int us)

__device__ int add_calls;
__device__ int add_seed = 7;

static __device__ void take(int us)
{
	if (blockIdx.x == 0 && threadIdx.x == 0)
		for (int i = 0; i < us; i++)
			__nanosleep(1000);
}

static __device__ void sum(const float *x, const float *y, float *out, int n)
{
	for (int i = (int)(blockIdx.x * blockDim.x + threadIdx.x); i < n; i += (int)(gridDim.x * blockDim.x))
		out[i] = x[i] + y[i];
}

ENTRY(add_good)
{
	take(us);
	sum(x, y, out, n);
}

/* One element in the middle is off by a little. */
ENTRY(add_wrong)
{
	take(us);
	sum(x, y, out, n);
	int at = n / 2;
	if (at % (int)(gridDim.x * blockDim.x) == (int)(blockIdx.x * blockDim.x + threadIdx.x))
		out[at] += 1.0f;
}

/* Right for inputs of the spec's own distribution only. */
ENTRY(add_clipped)
{
	take(us);
	for (int i = (int)(blockIdx.x * blockDim.x + threadIdx.x); i < n; i += (int)(gridDim.x * blockDim.x)) {
		float s = x[i] + y[i];
		out[i] = s > 50.0f ? 50.0f : s < -50.0f ? -50.0f : s;
	}
}

/* Never comes back. The flag is memory, so that no compiler may leave the loop out. */
ENTRY(add_hang)
{
	volatile float *p = out;
	p[0] = 1.0f;
	while (p[0] != 2.0f && us >= 0)
		p[0] = 1.0f;
	sum(x, y, out, n);
}

ENTRY(add_illegal)
{
	take(us);
	sum(x, y, out, n);
	if (blockIdx.x == 0 && threadIdx.x == 0)
		*(volatile float *)(out + (1ll << 38)) = 1.0f;
}

ENTRY(add_trap)
{
	sum(x, y, out, n);
	if (blockIdx.x == 0 && threadIdx.x == 0 && us >= 0)
		__trap();
}

ENTRY(add_write_input)
{
	take(us);
	sum(x, y, out, n);
	if (blockIdx.x == 0 && threadIdx.x == 0)
		*(volatile float *)x = x[0];
}

/* Right behind the output. */
ENTRY(add_guard)
{
	take(us);
	sum(x, y, out, n);
	if (blockIdx.x == 0 && threadIdx.x == 0)
		*(volatile float *)(out + n) = 3.0f;
}

/* Right in its first call only. */
ENTRY(add_counter)
{
	take(us);
	sum(x, y, out, n);
	if (blockIdx.x == 0 && threadIdx.x == 0 && (atomicAdd(&add_calls, 1) || add_seed != 7))
		out[0] = 12345.0f;
}

/* Computes once and leaves it at that. */
ENTRY(add_lazy)
{
	take(us);
	if (add_seed == 7)
		sum(x, y, out, n);
	if (blockIdx.x == gridDim.x - 1 && threadIdx.x == blockDim.x - 1)
		add_seed = 8;
}

/* Block-wide barriers and shared memory work too. */
ENTRY(add_shared)
{
	__shared__ float tile[256];
	for (int base = (int)(blockIdx.x * 256); base < n; base += (int)(gridDim.x * 256)) {
		int i = base + (int)threadIdx.x, back = base + 255 - (int)threadIdx.x;
		tile[255 - threadIdx.x] = back < n ? x[back] + y[back] : 0;
		__syncthreads();
		if (i < n)
			out[i] = tile[threadIdx.x];
		__syncthreads();
	}
	take(us);
}

/* Waits politely for what nobody writes. */
ENTRY(add_spin)
{
	sum(x, y, out, n);
	while (blockIdx.x == 0 && threadIdx.x == 0 && *(volatile const float *)x < 1e30f)
		__nanosleep((unsigned)us + 100);
}

/* A lock that is never given back. */
ENTRY(add_lock)
{
	__shared__ int lock;
	if (threadIdx.x == 0)
		lock = us + 1;
	__syncthreads();
	while (atomicCAS(&lock, 0, us + 1) != 0)
		;
	sum(x, y, out, n);
}

/* Would end, in an hour or so. */
ENTRY(add_long)
{
	volatile float *p = out;
	for (long long i = 0; i < 1ll << 40; i++)
		p[0] = (float)us;
	sum(x, y, out, n);
}

ENTRY(add_null)
{
	sum(x, y, out, n);
	if (blockIdx.x == 0 && threadIdx.x == 0)
		*(volatile float *)(unsigned long long)(us * 4) = 1.0f;
}

ENTRY(add_far_read)
{
	take(us);
	sum(x, y, out, n);
	if (blockIdx.x == 0 && threadIdx.x == 0)
		out[0] = *(volatile const float *)(x + (1ll << 38));
}

/* Eight bytes at an address that is a multiple of four only: a host does not mind. */
ENTRY(add_misaligned)
{
	take(us);
	sum(x, y, out, n);
	if (blockIdx.x == 0 && threadIdx.x == 0)
		*(volatile long long *)((char *)out + 4) = 0;
}

/* Far behind the block's shared memory: no fault on a host. */
ENTRY(add_wild_shared)
{
	__shared__ float tile[32];
	take(us);
	sum(x, y, out, n);
	((volatile float *)tile)[(1 << 20) + us + (int)threadIdx.x] = 1.0f;
	out[0] = x[0] + y[0];
}

/* The last quarter is left out. */
ENTRY(add_unwritten)
{
	take(us);
	sum(x, y, out, n - n / 4 - 1);
}

ENTRY(add_nan)
{
	take(us);
	sum(x, y, out, n);
	int at = n / 3;
	if (at % (int)(gridDim.x * blockDim.x) == (int)(blockIdx.x * blockDim.x + threadIdx.x))
		out[at] = __int_as_float(0x7fffffff);
}

ENTRY(add_minus)
{
	take(us);
	for (int i = (int)(blockIdx.x * blockDim.x + threadIdx.x); i < n; i += (int)(gridDim.x * blockDim.x))
		out[i] = x[i] - y[i];
}
