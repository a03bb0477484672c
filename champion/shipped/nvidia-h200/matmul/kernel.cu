/*
 * matmul: c[m][n] = sum_k a[m][k] * b[k][n], fp32 on the ordinary cores.
 *
 * 16 x 16 threads compute a BM x BN tile, BM/16 x BN/16 results each. Panels BK deep come by asynchronous
 * copies, STAGES of them in flight. A is kept by rows, DEEP columns of k are read at a time;
 * its rows are padded by four floats so that the rows of neighbouring threads lie in different banks.
 *
 * k may be split over blockIdx.z: each part writes its sums to `part`, and `matmul_sum` adds them in a
 * fixed order. The plan decides how many parts a shape needs to fill the device.
 *
 * `matmul4` copies 16 bytes at a time and needs n and k to be multiples of four; `matmul1` copies single
 * floats and takes every shape. `small` is for few results of short sums.
 */
#include <cuda_pipeline_primitives.h>

#define TM (BM / 16)
#define TN (BN / 16)
#define PAD (BK + 4)
#define A_FLOATS (BM * PAD)
#define B_FLOATS (BK * BN)
#define THREADS 256

/* What a thread copies of each panel: one column group of A every ROWS_A rows, one of B every ROWS_B. */
template <int W>
struct source {
	enum { ROWS_A = THREADS * W / BK, ROWS_B = THREADS * W / BN };
	const float *a, *b;   /* of the next panel */
	int ka, kb;           /* how far the end is from there */
	int rows, cols;       /* how many rows of A there are from the thread's first on; its columns of B */
	int k, n;
	float *to_a, *to_b;   /* in stage 0 */

	__device__ source(const float *as, const float *bs, float *shared, int row, int col, int from, int end,
			  int m, int n, int k)
		: ka(end - from - (int)threadIdx.x % (BK / W) * W), kb(end - from - (int)threadIdx.x / (BN / W)),
		  rows(m - row - (int)threadIdx.x / (BK / W)), k(k), n(n)
	{
		int r = threadIdx.x / (BK / W), q = threadIdx.x % (BK / W) * W;
		int p = threadIdx.x / (BN / W), s = threadIdx.x % (BN / W) * W;
		cols = n - col - s;
		a = as + (long long)(row + r) * k + from + q;
		b = bs + (long long)(from + p) * n + col + s;
		to_a = shared + r * PAD + q;
		to_b = shared + A_FLOATS + p * BN + s;
	}

	/* Start the copies of one panel; what lies outside the matrices becomes zero. */
	__device__ void load(int stage, const float *safe)
	{
		float *da = to_a + stage * (A_FLOATS + B_FLOATS), *db = to_b + stage * (A_FLOATS + B_FLOATS);
#pragma unroll
		for (int i = 0; i < BM; i += ROWS_A) {
			bool in = i < rows && ka > 0;
			__pipeline_memcpy_async(da + i * PAD, in ? a + i * k : safe, 4 * W, in ? 0 : 4 * W);
		}
#pragma unroll
		for (int i = 0; i < BK; i += ROWS_B) {
			bool in = i < kb && cols > 0;
			__pipeline_memcpy_async(db + i * BN, in ? b + i * n : safe, 4 * W, in ? 0 : 4 * W);
		}
		a += BK;
		b += BK * n;
		ka -= BK;
		kb -= BK;
	}
};

/* acc += as * bs: the rows of a thread are 16 apart, its columns groups of four, 64 apart. */
__device__ static void multiply(float (&acc)[TM][TN], const float *as, const float *bs)
{
	int tx = threadIdx.x % 16, ty = threadIdx.x / 16;

#pragma unroll UNROLL
	for (int q = 0; q < BK; q += DEEP) {
		float fa[TM][DEEP];
#pragma unroll
		for (int i = 0; i < TM; i++) {
			const float *from = as + (ty + 16 * i) * PAD + q;
#if DEEP == 4
			float4 v = *(const float4 *)from;
			fa[i][2] = v.z;
			fa[i][3] = v.w;
#else
			float2 v = *(const float2 *)from;
#endif
			fa[i][0] = v.x;
			fa[i][1] = v.y;
		}
#pragma unroll
		for (int d = 0; d < DEEP; d++)
#pragma unroll
			for (int j = 0; j < TN / 4; j++) {
				float4 fb = *(const float4 *)(bs + (q + d) * BN + tx * 4 + j * 64);
#pragma unroll
				for (int i = 0; i < TM; i++) {
					acc[i][4 * j] += fa[i][d] * fb.x;
					acc[i][4 * j + 1] += fa[i][d] * fb.y;
					acc[i][4 * j + 2] += fa[i][d] * fb.z;
					acc[i][4 * j + 3] += fa[i][d] * fb.w;
				}
			}
	}
}

template <int W>
__device__ static void store(const float (&acc)[TM][TN], float *c, int row, int col, int m, int n)
{
	int tx = threadIdx.x % 16, ty = threadIdx.x / 16;

#pragma unroll
	for (int i = 0; i < TM; i++) {
		int r = row + ty + 16 * i;
		if (r >= m)
			continue;
#pragma unroll
		for (int j = 0; j < TN / 4; j++) {
			int s = col + tx * 4 + j * 64;
			float *to = c + (long long)r * n + s;
			if (W == 4 && s < n) {
				*(float4 *)to = make_float4(acc[i][4 * j], acc[i][4 * j + 1], acc[i][4 * j + 2],
							    acc[i][4 * j + 3]);
			} else if (W == 1) {
#pragma unroll
				for (int d = 0; d < 4; d++)
					if (s + d < n)
						to[d] = acc[i][4 * j + d];
			}
		}
	}
}

/* Tiles in bands of GROUP rows, so that blocks in flight share panels in the cache. */
__device__ static int2 place(int m, int n)
{
	int down = (m + BM - 1) / BM, across = (n + BN - 1) / BN, t = blockIdx.x;
	int band = t / (GROUP * across), first = band * GROUP, high = min(GROUP, down - first);
	t -= band * GROUP * across;
	return make_int2((first + t % high) * BM, t / high * BN);
}

template <int W>
__device__ static void tile(const float *a, const float *b, float *c, float *part, int m, int n, int k, int per)
{
	extern __shared__ float4 shared4[];
	float *shared = (float *)shared4;
	int2 at = place(m, n);
	int from = blockIdx.z * per, end = min(k, from + per), steps = end > from ? (end - from + BK - 1) / BK : 0;
	struct source<W> source(a, b, shared, at.x, at.y, from, end, m, n, k);
	float acc[TM][TN] = {};

#pragma unroll
	for (int s = 0; s < STAGES - 1; s++) {
		if (s < steps)
			source.load(s, a);
		__pipeline_commit();
	}
	int now = 0, next = STAGES - 1; /* stages */
#pragma unroll 1
	for (int s = 0; s < steps; s++) {
		__pipeline_wait_prior(STAGES - 2);
		__syncthreads(); /* panel s is there, and everybody is done with the one that is overwritten now */
		if (s + STAGES - 1 < steps)
			source.load(next, a);
		__pipeline_commit();
		const float *panel = shared + now * (A_FLOATS + B_FLOATS);
		multiply(acc, panel, panel + A_FLOATS);
		now = now + 1 == STAGES ? 0 : now + 1;
		next = next + 1 == STAGES ? 0 : next + 1;
	}
	if (gridDim.z > 1)
		c = part + (long long)blockIdx.z * m * n;
	store<W>(acc, c, at.x, at.y, m, n);
}

extern "C" __global__ void __launch_bounds__(THREADS, OCCUPY)
matmul4(const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ c,
	float *__restrict__ part, int m, int n, int k, int per)
{
	tile<4>(a, b, c, part, m, n, k, per);
}

extern "C" __global__ void __launch_bounds__(THREADS, OCCUPY)
matmul1(const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ c,
	float *__restrict__ part, int m, int n, int k, int per)
{
	tile<1>(a, b, c, part, m, n, k, per);
}

extern "C" __global__ void __launch_bounds__(256)
matmul_sum(const float *__restrict__ part, float *__restrict__ c, int count, int parts)
{
	for (int i = blockIdx.x * 256 + threadIdx.x; i < count; i += gridDim.x * 256) {
		float s = 0.0f;
		for (int p = 0; p < parts; p++)
			s += part[(long long)p * count + i];
		c[i] = s;
	}
}

/*
 * For few results of short sums, where the launches and the filling of the pipeline above would take longer than the
 * work: 16 x 16 results a block, one a thread, 64 of k at a time.
 */
extern "C" __global__ void __launch_bounds__(256)
small(const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ c, int m, int n, int k)
{
	__shared__ float as[16][65], bs[64][16];
	int tx = threadIdx.x % 16, ty = threadIdx.x / 16, row = blockIdx.y * 16 + ty, col = blockIdx.x * 16 + tx;
	float sum = 0.0f;

	for (int from = 0; from < k; from += 64) {
#pragma unroll
		for (int i = 0; i < 64; i += 16) {
			as[ty][i + tx] = row < m && from + i + tx < k
				? a[(long long)row * k + from + i + tx] : 0.0f;
			bs[i + ty][tx] = col < n && from + i + ty < k
				? b[(long long)(from + i + ty) * n + col] : 0.0f;
		}
		__syncthreads();
#pragma unroll 16
		for (int q = 0; q < min(64, k - from); q++)
			sum += as[ty][q] * bs[q][tx];
		__syncthreads();
	}
	if (row < m && col < n)
		c[(long long)row * n + col] = sum;
}
