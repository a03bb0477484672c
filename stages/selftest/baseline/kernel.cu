/*
 * The candidate of the self-test: honest with mode 0, and with any other one a slip that only a certain rule
 * sees (stages/lib/selftest_slips.c). Ranks by counting, a block a row.
 *
 * SPDX-License-Identifier: MIT
 */
#include <cuda_bf16.h>

enum { HONEST, FOUND, WRITES_INPUT, FAULTS, RESTORES, LAST_WINS, ONE_SHAPE, WRONG, PEEKS };

/* What follows the honest part. */
__device__ static void slip(int mode, const float *x, const float *y, float *sum, float *same, int row,
				int c)
{
	int last = row == (int)gridDim.x - 1 && threadIdx.x == blockDim.x - 1;

	if (mode == WRITES_INPUT && last)
		((volatile float *)x)[0] = 1.0f;
	if (mode == FAULTS && last)
		*(volatile int *)16 = 1;
	if (mode == RESTORES && last) {
		volatile float *end = sum + (row + 1) * c;
		float was = *end;
		*end = 1.0f;
		*end = was;
	}
	if (mode == LAST_WINS)
		same[row * c] = x[row * c] + y[row * c] + (threadIdx.x == blockDim.x - 1 ? 0.0f : 1.0f);
	if ((mode == ONE_SHAPE && c != 128) || mode == WRONG)
		sum[row * c + threadIdx.x] = 1000.0f;
	/* Too little to be wrong, enough to be seen: the low bits of 16 words that are not ours. */
	if (mode == PEEKS && row == 0 && threadIdx.x < 16) {
		unsigned int word = ((const unsigned int *)sum)[(int)threadIdx.x - 16];
		sum[threadIdx.x] *= 1.0f + (float)(word & 255u) * 1e-6f;
	}
}

extern "C" __global__ void selftest_kernel(const float *x, const float *y, const int *key, const int *p,
					   float *sum, float *fine, __nv_bfloat16 *narrow, float *same,
					   int *number, int *best, int *top, float *topv, int *order, int *draw,
					   float *scratch, int shift, int c, int k, int bins, int s, int mode)
{
	int row = blockIdx.x;

	for (int i = threadIdx.x; i < c; i += blockDim.x) {
		int at = row * c + i, above = 0, before = 0;
		float v = x[at] + y[at];
		for (int j = 0; j < c; j++) {
			float a = x[row * c + j];
			int b = key[row * c + j];
			above += a > x[at] || (a == x[at] && j < i);
			before += b < key[at] || (b == key[at] && j < i);
		}
		if (mode != FOUND)
			scratch[at] = v;
		sum[at] = scratch[at];
		fine[at] = v;
		narrow[at] = __float2bfloat16_rn(v);
		same[at] = v;
		number[at] = 3 * key[at] + shift;
		order[row * c + before] = i;
		if (above == 0)
			best[row] = i;
		if (above < k) {
			top[row * k + above] = i;
			topv[row * k + above] = x[at];
		}
	}
	/* As many of each as the weights say. */
	for (int i = threadIdx.x; i < s; i += blockDim.x) {
		int total = 0, before = 0, bin = 0;
		for (int b = 0; b < bins; b++)
			total += p[row * bins + b];
		while (bin + 1 < bins && (before + p[row * bins + bin]) * s * 2 <= (2 * i + 1) * total)
			before += p[row * bins + bin++];
		draw[row * s + i] = bin;
	}
	slip(mode, x, y, sum, same, row, c);
}
