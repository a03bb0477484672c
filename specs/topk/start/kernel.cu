/*
 * topk: the k largest (at most 64) of each row, in descending order, and where they are.
 *
 *   select_warp    a row of at most 32 * SHORT elements a warp, in registers; k rounds of a warp-wide maximum
 *   select_block   a chunk of THREADS * ITEMS elements a block, in registers. At least k elements are not below
 *                  the k-th largest of the threads' maxima, and with most data few more are: these are sorted.
 *                  If they are too many for the buffer (equal values), k rounds of a block-wide maximum.
 *   merge          sorts the candidates of a row's chunks
 *
 * Floats are compared as unsigned integers of the same order; 0 stands for "nothing" (no float maps to it but
 * one NaN). A candidate is that integer above the inverted column, so that equal values come in order.
 */
typedef unsigned int u32;
typedef unsigned long long u64;

#define CHUNK (THREADS * ITEMS)
#define BUFFER 1024

__device__ static u32 key_of(float f)
{
	u32 u = __float_as_uint(f);
	return u & 0x80000000u ? ~u : u | 0x80000000u;
}

__device__ static float float_of(u32 key)
{
	return __uint_as_float(key & 0x80000000u ? key & 0x7fffffffu : ~key);
}

__device__ static u64 candidate(u32 key, int column)
{
	return key ? (u64)key << 32 | (u32)~column : 0;
}

__device__ static void put(u64 c, float *values, int *indices, long long at)
{
	values[at] = float_of((u32)(c >> 32));
	indices[at] = (int)~(u32)c;
}

/* Descending, in shared memory; n a power of two. Ends with a barrier. */
template <class T>
__device__ static void sort(T *v, int n)
{
	for (int size = 2; size <= n; size *= 2)
		for (int step = size / 2; step > 0; step /= 2) {
			__syncthreads();
			for (int i = threadIdx.x; i < n / 2; i += blockDim.x) {
				int lo = i / step * step * 2 + i % step, hi = lo + step;
				bool down = (lo & size) == 0;
				T a = v[lo], b = v[hi];
				if ((a < b) == down) {
					v[lo] = b;
					v[hi] = a;
				}
			}
		}
	__syncthreads();
}

extern "C" __global__ void __launch_bounds__(128)
select_warp(const float *__restrict__ x, float *__restrict__ values, int *__restrict__ indices, int rows, int n, int k)
{
	int row = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
	u32 v[SHORT], best = 0;

	if (row >= rows)
		return;
#pragma unroll
	for (int i = 0; i < SHORT; i++) {
		int at = i * 32 + lane;
		v[i] = at < n ? key_of(__ldcs(x + (long long)row * n + at)) : 0;
		best = max(best, v[i]);
	}
	for (int r = 0; r < k; r++) {
		u32 top = __reduce_max_sync(0xffffffffu, best);
		int owner = __ffs((int)__ballot_sync(0xffffffffu, best == top)) - 1;
		if (lane != owner)
			continue; /* to the next round's reduction */
		int found = -1;
		best = 0;
#pragma unroll
		for (int i = 0; i < SHORT; i++) {
			if (found < 0 && v[i] == top) {
				found = i * 32 + lane;
				v[i] = 0;
			}
			best = max(best, v[i]);
		}
		values[(long long)row * k + r] = float_of(top);
		indices[(long long)row * k + r] = found;
	}
}

/* This thread's elements: those before `left` of the chunk, as keys. Column of v[i]: column<WIDE>(i). */
template <bool WIDE>
__device__ static int column(int i)
{
	return WIDE ? (i / 4 * THREADS + threadIdx.x) * 4 + i % 4 : i * THREADS + threadIdx.x;
}

template <bool WIDE>
__device__ static void load(u32 (&v)[ITEMS], const float *from, int left)
{
#pragma unroll
	for (int i = 0; i < ITEMS; i += WIDE ? 4 : 1) {
		int at = column<WIDE>(i);
		if (WIDE) {
			float4 q = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
			if (at < left)
				q = __ldcs((const float4 *)(from + at));
			v[i] = at < left ? key_of(q.x) : 0;
			v[(i + 1) % ITEMS] = at < left ? key_of(q.y) : 0;
			v[(i + 2) % ITEMS] = at < left ? key_of(q.z) : 0;
			v[(i + 3) % ITEMS] = at < left ? key_of(q.w) : 0;
		} else {
			v[i] = at < left ? key_of(__ldcs(from + at)) : 0;
		}
	}
}

/* The k best of the chunk into found[], without a threshold. */
template <bool WIDE>
__device__ static void one_by_one(const u32 (&v)[ITEMS], u64 *found, int k)
{
	__shared__ u64 part[32];
	u64 last = ~0ull;

	for (int r = 0; r < k; r++) {
		u64 best = 0;
#pragma unroll
		for (int i = 0; i < ITEMS; i++) {
			u64 c = candidate(v[i], column<WIDE>(i));
			if (c < last && c > best)
				best = c;
		}
#pragma unroll
		for (int d = 16; d > 0; d /= 2)
			best = max(best, __shfl_xor_sync(0xffffffffu, best, d));
		__syncthreads();
		if (threadIdx.x % 32 == 0)
			part[threadIdx.x / 32] = best;
		__syncthreads();
		best = part[0];
		for (int i = 1; i < THREADS / 32; i++)
			best = max(best, part[i]);
		last = best;
		if (threadIdx.x == 0)
			found[r] = best;
	}
	__syncthreads();
}

template <bool WIDE>
__device__ static void select(const float *from, int left, int first, u64 *cand, float *values, int *indices, int k)
{
	__shared__ u64 found[BUFFER];
	__shared__ u32 tops[THREADS];
	__shared__ int count;
	u32 v[ITEMS], best = 0;

	load<WIDE>(v, from, left);
#pragma unroll
	for (int i = 0; i < ITEMS; i++)
		best = max(best, v[i]);
	tops[threadIdx.x] = best;
	if (threadIdx.x == 0)
		count = 0;
	sort(tops, THREADS);
	u32 least = max(tops[k - 1], 1u);
#pragma unroll
	for (int i = 0; i < ITEMS; i++)
		if (v[i] >= least) {
			int at = atomicAdd(&count, 1);
			if (at < BUFFER)
				found[at] = candidate(v[i], column<WIDE>(i));
		}
	__syncthreads();
	int n = count;
	if (n > BUFFER) {
		one_by_one<WIDE>(v, found, k);
	} else {
		int size = 64;
		while (size < n)
			size *= 2;
		for (int i = n + threadIdx.x; i < size; i += THREADS)
			found[i] = 0;
		sort(found, size);
	}
	for (int i = threadIdx.x; i < k; i += THREADS) {
		u64 c = found[i];
		if (c)
			c -= (u64)(u32)first; /* the column of the row, inverted */
		if (cand)
			cand[i] = c;
		else
			put(c, values, indices, i);
	}
}

extern "C" __global__ void __launch_bounds__(THREADS)
select_block(const float *__restrict__ x, u64 *__restrict__ cand, float *__restrict__ values,
	     int *__restrict__ indices, int n, int k)
{
	int chunks = gridDim.x, first = blockIdx.x * CHUNK, left = min(CHUNK, n - first);
	long long row = blockIdx.y;
	const float *from = x + row * n + first;
	u64 *to = chunks > 1 ? cand + (row * chunks + blockIdx.x) * k : 0;

	if (n % 4 == 0)
		select<true>(from, left, first, to, values + row * k, indices + row * k, k);
	else
		select<false>(from, left, first, to, values + row * k, indices + row * k, k);
}

extern "C" __global__ void __launch_bounds__(512)
merge(const u64 *__restrict__ cand, float *__restrict__ values, int *__restrict__ indices, int n, int size, int k)
{
	extern __shared__ u64 pile[];

	for (int i = threadIdx.x; i < size; i += 512)
		pile[i] = i < n ? cand[(long long)blockIdx.x * n + i] : 0;
	sort(pile, size);
	for (int i = threadIdx.x; i < k; i += 512)
		put(pile[i], values, indices, (long long)blockIdx.x * k + i);
}
