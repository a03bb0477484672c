/*
 * topk: the k largest (at most 64) of each row, in descending order, and where they are.
 *
 *   select_warp    a row of at most 32 * SHORT elements a warp, in registers. At least k elements are not below the
 *                  k-th largest of the lanes' maxima, and with most data few more are: these change places until
 *                  each knows how many are above it. Otherwise k rounds of a warp-wide maximum.
 *   select_block   a chunk of THREADS * ITEMS elements a block, in registers; the same threshold from the threads'
 *                  maxima, to 16 bits. What reaches it is sorted if it is the whole row, else left for `merge`, in
 *                  any order. If they are too many for the buffer (equal values), k rounds of a block-wide maximum.
 *   merge          does it again with the candidates of a row's chunks, CAP of each, and sorts those
 *   select_row     a row a block of WIDTH threads, read in one go: the first batch of BATCH floats a thread gives the
 *                  threshold, the rest is only compared with it while the AHEAD - 1 batches after are on their way.
 *                  Nothing is left for a second launch; for rows enough to fill the GPU.
 *
 * Floats are compared as unsigned integers of the same order; 0 stands for "nothing" (no float maps to it but
 * one NaN). A candidate is that integer above the inverted column, so that equal values come in order.
 */
#include <cuda_pipeline_primitives.h>

typedef unsigned int u32;
typedef unsigned long long u64;

#define CHUNK (THREADS * ITEMS)
#define BUFFER 1024
#define CAP 256 /* candidates of a chunk that has others beside it */

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

/* Descending over the lanes. */
__device__ static u32 warp_sort(u32 v)
{
	int lane = threadIdx.x % 32;

#pragma unroll
	for (int size = 2; size <= 32; size *= 2)
#pragma unroll
		for (int step = size / 2; step > 0; step /= 2) {
			u32 o = __shfl_xor_sync(0xffffffffu, v, step);
			v = ((lane & size) == 0) == ((lane & step) == 0) ? max(v, o) : min(v, o);
		}
	return v;
}

/* Column of a lane's v[i] in select_warp. */
__device__ static int short_column(int i, bool wide)
{
	int lane = threadIdx.x % 32;
	return wide ? i / 4 * 128 + lane * 4 + i % 4 : i * 32 + lane;
}

/* k rounds of the largest that is left. */
__device__ static void warp_rounds(u32 (&v)[SHORT], bool wide, float *values, int *indices, int k)
{
	int lane = threadIdx.x % 32;
	u32 best = 0;

#pragma unroll
	for (int i = 0; i < SHORT; i++)
		best = max(best, v[i]);
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
				found = short_column(i, wide);
				v[i] = 0;
			}
			best = max(best, v[i]);
		}
		values[r] = float_of(top);
		indices[r] = found;
	}
}

extern "C" __global__ void __launch_bounds__(128)
select_warp(const float *__restrict__ x, float *__restrict__ values, int *__restrict__ indices, int rows, int n, int k)
{
	__shared__ u64 found[4][32];
	int row = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
	u64 *mine = found[threadIdx.x / 32];
	u32 v[SHORT], best = 0;

	if (row >= rows)
		return;
	x += (long long)row * n;
	values += (long long)row * k;
	indices += (long long)row * k;
	bool wide = SHORT % 4 == 0 && n % 4 == 0; /* then four columns in a row are one lane's */
	if (wide) {
#pragma unroll
		for (int i = 0; i < SHORT; i += 4) {
			int at = i * 32 + 4 * lane;
			float4 q = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
			if (at < n)
				q = __ldcs((const float4 *)(x + at));
			v[i] = at < n ? key_of(q.x) : 0;
			v[(i + 1) % SHORT] = at < n ? key_of(q.y) : 0;
			v[(i + 2) % SHORT] = at < n ? key_of(q.z) : 0;
			v[(i + 3) % SHORT] = at < n ? key_of(q.w) : 0;
		}
	} else {
#pragma unroll
		for (int i = 0; i < SHORT; i++) {
			int at = i * 32 + lane;
			v[i] = at < n ? key_of(__ldcs(x + at)) : 0;
		}
	}
#pragma unroll
	for (int i = 0; i < SHORT; i++)
		best = max(best, v[i]);
	if (k > 16) {
		warp_rounds(v, wide, values, indices, k);
		return;
	}
	u32 least;
	if (k <= 8) { /* the largest that is left goes, k times: equal ones go at once, which only lowers what is left */
		u32 left = best;
		for (int r = 0; r < k; r++) {
			least = __reduce_max_sync(0xffffffffu, left);
			left = left == least ? 0 : left;
		}
		least = max(least, 1u);
	} else {
		least = max(__shfl_sync(0xffffffffu, warp_sort(best), k - 1), 1u);
	}
	int count = 0;
#pragma unroll
	for (int i = 0; i < SHORT; i++) {
		u32 here = __ballot_sync(0xffffffffu, v[i] >= least);
		int at = count + __popc(here & ((1u << lane) - 1));
		if (v[i] >= least && at < 32)
			mine[at] = candidate(v[i], short_column(i, wide));
		count += __popc(here);
	}
	if (count > 32 || count < k) {
		warp_rounds(v, wide, values, indices, k);
		return;
	}
	__syncwarp();
	u64 own = lane < count ? mine[lane] : 0;
	int above = 0;
	for (int i = 0; i < count; i++)
		above += mine[i] > own;
	if (lane < count && above < k)
		put(own, values, indices, above);
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

/*
 * A value that at least k of the block's `best` reach (0: there are not as many), and no more than need be: the largest
 * of its upper 16 bits. All threads get it; ends with a barrier. COUNT threads.
 */
template <int COUNT>
__device__ static u32 threshold(u32 best, int k)
{
	__shared__ u32 tops[COUNT];
	__shared__ u32 least;

	tops[threadIdx.x] = best;
	__syncthreads();
	if (threadIdx.x < 32) {
		u32 top[COUNT / 32], t = 0;
#pragma unroll
		for (int i = 0; i < COUNT / 32; i++)
			top[i] = tops[i * 32 + threadIdx.x];
#pragma unroll 1
		for (u32 bit = 1u << 31; bit >= 1u << 16; bit >>= 1) {
			int count = 0;
#pragma unroll
			for (int i = 0; i < COUNT / 32; i++)
				count += top[i] >= (t | bit);
			if (__reduce_add_sync(0xffffffffu, count) >= k)
				t |= bit;
		}
		if (threadIdx.x == 0)
			least = t;
	}
	__syncthreads();
	return least;
}

/* The whole row, or (cand) one chunk of it: candidates, and how many, for `merge`. */
template <bool WIDE>
__device__ static void select(const float *from, int left, int first, u64 *cand, int *many, float *values, int *indices,
			      int k)
{
	__shared__ u64 found[BUFFER];
	__shared__ int count;
	u32 v[ITEMS], best = 0;

	load<WIDE>(v, from, left);
#pragma unroll
	for (int i = 0; i < ITEMS; i++)
		best = max(best, v[i]);
	if (threadIdx.x == 0)
		count = 0;
	u32 least = max(threshold<THREADS>(best, k), 1u);
	int room = cand ? CAP : BUFFER;
	if (best >= least) {
#pragma unroll
		for (int i = 0; i < ITEMS; i++)
			if (v[i] >= least) {
				int at = atomicAdd(&count, 1);
				if (at < room)
					found[at] = candidate(v[i], column<WIDE>(i));
			}
	}
	__syncthreads();
	int n = count;
	if (n > room) {
		one_by_one<WIDE>(v, found, k);
		n = k;
	} else if (!cand) {
		int size = 64;
		while (size < n)
			size *= 2;
		for (int i = n + threadIdx.x; i < size; i += THREADS)
			found[i] = 0;
		sort(found, size);
	}
	if (!cand) {
		for (int i = threadIdx.x; i < k; i += THREADS)
			put(found[i], values, indices, i);
		return;
	}
	for (int i = threadIdx.x; i < n; i += THREADS) {
		u64 c = found[i];
		cand[i] = c ? c - (u64)(u32)first : 0; /* the column of the row, inverted */
	}
	if (threadIdx.x == 0)
		*many = n;
}

/* `cand`: CAP a chunk; `many`: how many of these there are. */
extern "C" __global__ void __launch_bounds__(THREADS)
select_block(const float *__restrict__ x, u64 *__restrict__ cand, int *__restrict__ many, float *__restrict__ values,
	     int *__restrict__ indices, int n, int k)
{
	int chunks = gridDim.x, first = blockIdx.x * CHUNK, left = min(CHUNK, n - first);
	long long row = blockIdx.y, chunk = row * chunks + blockIdx.x;
	const float *from = x + row * n + first;
	u64 *to = chunks > 1 ? cand + chunk * CAP : 0;

	if (n % 4 == 0)
		select<true>(from, left, first, to, many + chunk, values + row * k, indices + row * k, k);
	else
		select<false>(from, left, first, to, many + chunk, values + row * k, indices + row * k, k);
}

/* One block a row. */
extern "C" __global__ void __launch_bounds__(512)
merge(const u64 *__restrict__ cand, const int *__restrict__ many, float *__restrict__ values, int *__restrict__ indices,
      int chunks, int k)
{
	extern __shared__ u64 pile[]; /* CAP a chunk */
	__shared__ int count;
	u32 best = 0;

	cand += (long long)blockIdx.x * chunks * CAP;
	many += (long long)blockIdx.x * chunks;
	if (threadIdx.x == 0)
		count = 0;
	for (int i = threadIdx.x; i < chunks * CAP; i += 512) {
		u64 own = i % CAP < many[i / CAP] ? cand[i] : 0;
		best = max(best, (u32)(own >> 32));
		pile[i] = own;
	}
	u32 least = max(threshold<512>(best, k), 1u);
	/* What reaches the threshold moves to the front: read, barrier, written. */
	for (int from = 0; from < chunks * CAP; from += 512) {
		int i = from + threadIdx.x;
		u64 own = i < chunks * CAP ? pile[i] : 0;
		__syncthreads();
		if ((u32)(own >> 32) >= least)
			pile[atomicAdd(&count, 1)] = own;
		__syncthreads();
	}
	int n = count, size = 64;
	while (size < n)
		size *= 2;
	for (int i = n + threadIdx.x; i < size; i += 512)
		pile[i] = 0;
	sort(pile, size);
	for (int i = threadIdx.x; i < k; i += 512)
		put(pile[i], values, indices, (long long)blockIdx.x * k + i);
}

/* ---- select_row ---- */

#define PILE 2048 /* candidates of a row, at most */

/* Of the best of each thread: a value that at least k of them reach, to its upper 16 bits; all threads get it. */
__device__ static u32 row_threshold(u32 best, int k)
{
	u32 t = 0;
#pragma unroll 1
	for (u32 bit = 1u << 31; bit >= 1u << 16; bit >>= 1)
		if (__syncthreads_count(best >= (t | bit)) >= k)
			t |= bit;
	return t;
}

/* Start the copy of a thread's floats 4 * (WIDTH * i + thread) on behind `from`; nobody else looks at them. */
__device__ static void fetch(uint4 *ring, const float *x, int from, int n)
{
#pragma unroll
	for (int i = 0; i < BATCH / 4; i++) {
		int at = from + (i * WIDTH + threadIdx.x) * 4;
		if (at < n)
			__pipeline_memcpy_async(ring + i * WIDTH + threadIdx.x, x + at, 16);
	}
}

/* They have come. What is beyond n is below everything. */
__device__ static void keys(u32 (&v)[BATCH], const uint4 *ring, int from, int n)
{
#pragma unroll
	for (int i = 0; i < BATCH / 4; i++) {
		bool in = from + (i * WIDTH + threadIdx.x) * 4 < n;
		uint4 q = ring[i * WIDTH + threadIdx.x];
		v[4 * i] = in ? key_of(__uint_as_float(q.x)) : 0;
		v[4 * i + 1] = in ? key_of(__uint_as_float(q.y)) : 0;
		v[4 * i + 2] = in ? key_of(__uint_as_float(q.z)) : 0;
		v[4 * i + 3] = in ? key_of(__uint_as_float(q.w)) : 0;
	}
}

/* The candidates of `pile` that reach `least` move to its front: read, barrier, written. Returns how many; with barriers. */
__device__ static int squeeze(u64 *pile, int n, u32 least, int *count)
{
	u64 own[PILE / WIDTH];
#pragma unroll
	for (int i = 0; i < PILE / WIDTH; i++)
		own[i] = i * WIDTH + (int)threadIdx.x < n ? pile[i * WIDTH + threadIdx.x] : 0;
	__syncthreads();
	if (threadIdx.x == 0)
		*count = 0;
	__syncthreads();
#pragma unroll
	for (int i = 0; i < PILE / WIDTH; i++)
		if ((u32)(own[i] >> 32) >= least)
			pile[atomicAdd(count, 1)] = own[i];
	__syncthreads();
	n = *count;
	__syncthreads(); /* all have read it before anybody adds to it */
	return n;
}

/* The largest candidate below `last` among the pile's first n and this batch. All threads get it; ends with a barrier. */
__device__ static u64 next_best(const u32 (&v)[BATCH], int from, const u64 *pile, int n, u64 last)
{
	__shared__ u64 part[32];
	u64 best = 0;

#pragma unroll
	for (int i = 0; i < BATCH; i++) {
		u64 c = candidate(v[i], from + (i / 4 * WIDTH + threadIdx.x) * 4 + i % 4);
		if (c < last && c > best)
			best = c;
	}
	for (int i = threadIdx.x; i < n; i += WIDTH)
		if (pile[i] < last && pile[i] > best)
			best = pile[i];
#pragma unroll
	for (int d = 16; d > 0; d /= 2)
		best = max(best, __shfl_xor_sync(0xffffffffu, best, d));
	if (threadIdx.x % 32 == 0)
		part[threadIdx.x / 32] = best;
	__syncthreads();
	best = part[0];
	for (int i = 1; i < WIDTH / 32; i++)
		best = max(best, part[i]);
	__syncthreads();
	return best;
}

/*
 * What of this batch reaches `least` joins the n candidates of the pile. Where there is no room, the batch's own
 * threshold is taken too; where that does not help (many equal values), the k best of both, one by one.
 */
__device__ static int join(const u32 (&v)[BATCH], u32 best, int from, u64 *pile, int n, u32 *least, int *count, int k)
{
	for (int again = 0; again < 2; again++) {
		if (best >= *least) {
#pragma unroll
			for (int i = 0; i < BATCH; i++)
				if (v[i] >= *least) {
					int at = atomicAdd(count, 1);
					if (at < PILE)
						pile[at] = candidate(v[i], from + (i / 4 * WIDTH + threadIdx.x) * 4 + i % 4);
				}
		}
		__syncthreads();
		int all = *count;
		__syncthreads();
		if (all <= PILE)
			return all;
		*least = max(*least, row_threshold(best, k));
		n = squeeze(pile, n, *least, count); /* the first n: those of before */
	}
	/* `found` is apart from the pile, which is read until all k are known. */
	__shared__ u64 found[64];
	u64 last = ~0ull;
	for (int r = 0; r < k; r++) {
		last = next_best(v, from, pile, n, last);
		if (threadIdx.x == 0)
			found[r] = last;
	}
	__syncthreads();
	for (int i = threadIdx.x; i < k; i += WIDTH)
		pile[i] = found[i];
	if (threadIdx.x == 0)
		*count = k;
	__syncthreads();
	*least = max(*least, (u32)(last >> 32) + 1); /* equal ones further on are as good as these */
	return k;
}

extern "C" __global__ void __launch_bounds__(WIDTH)
select_row(const float *__restrict__ x, float *__restrict__ values, int *__restrict__ indices, int n, int k)
{
	extern __shared__ uint4 ring[]; /* [AHEAD][BATCH / 4][WIDTH] */
	__shared__ u64 found[PILE];
	__shared__ int count;
	const int batch = WIDTH * BATCH;
	const float *row = x + (long long)blockIdx.x * n;
	u32 least = 1;
	int have = 0, slot = 0;

	if (threadIdx.x == 0)
		count = 0;
#pragma unroll
	for (int i = 0; i < AHEAD; i++) {
		fetch(ring + i * (batch / 4), row, i * batch, n);
		__pipeline_commit();
	}
#pragma unroll 1
	for (int from = 0; from < n; from += batch) {
		u32 v[BATCH], best = 0;
		__pipeline_wait_prior(AHEAD - 1);
		keys(v, ring + slot * (batch / 4), from, n);
		fetch(ring + slot * (batch / 4), row, from + AHEAD * batch, n);
		__pipeline_commit();
		slot = slot + 1 == AHEAD ? 0 : slot + 1;
#pragma unroll
		for (int i = 0; i < BATCH; i++)
			best = max(best, v[i]);
		if (from == 0)
			least = max(row_threshold(best, k), 1u);
		have = join(v, best, from, found, have, &least, &count, k);
	}
	/* Few are left, and each learns how many are above it. */
	if (have > 2 * k) {
		u32 top = 0;
		for (int i = threadIdx.x; i < have; i += WIDTH)
			top = max(top, (u32)(found[i] >> 32));
		have = squeeze(found, have, max(row_threshold(top, k), 1u), &count);
	}
	for (int i = threadIdx.x; i < have; i += WIDTH) {
		u64 own = found[i];
		int above = 0;
		for (int j = 0; j < have; j++)
			above += found[j] > own;
		if (above < k)
			put(own, values, indices, (long long)blockIdx.x * k + above);
	}
}
