/*
 * The reference of the self-test: a block a row, ranks by counting. Float outputs hold 8-byte elements.
 *
 * SPDX-License-Identifier: MIT
 */
extern "C" __global__ void selftest_truth(const float *x, const float *y, const int *key, const int *p,
					  double *sum, double *fine, double *narrow, double *same, int *number,
					  int *best, int *top, double *topv, int *order, int *draw, int shift, int c,
					  int k, int bins, int s)
{
	int row = blockIdx.x;

	for (int i = threadIdx.x; i < c; i += blockDim.x) {
		int at = row * c + i, above = 0, before = 0;
		double v = (double)x[at] + (double)y[at];
		for (int j = 0; j < c; j++) {
			float a = x[row * c + j];
			int b = key[row * c + j];
			above += a > x[at] || (a == x[at] && j < i);
			before += b < key[at] || (b == key[at] && j < i);
		}
		sum[at] = fine[at] = narrow[at] = same[at] = v;
		number[at] = 3 * key[at] + shift;
		order[row * c + before] = i;
		if (above == 0)
			best[row] = i;
		if (above < k) {
			top[row * k + above] = i;
			topv[row * k + above] = (double)x[at];
		}
	}
	/* Samples are not compared one by one: any that follow the distribution will do. */
	for (int i = threadIdx.x; i < s; i += blockDim.x)
		draw[row * s + i] = 0 * bins + (p[0] < 0);
}
