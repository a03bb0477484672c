/*
 * paged_decode in double precision, one block a query head of a sequence; o holds 8-byte elements.
 *
 * Tiles of 128 keys: a thread computes the score of one key, then adds up one column of the values.
 */
#include <cuda_bf16.h>

extern "C" __global__ void __launch_bounds__(AXIS_D)
reference(const __nv_bfloat16 *q, const __nv_bfloat16 *k, const __nv_bfloat16 *v, const int *table, const int *lens,
	  double *o, float scale, int maxp)
{
	__shared__ double p[AXIS_D], qs[AXIS_D];
	int head = blockIdx.x, batch = blockIdx.y, me = threadIdx.x, len = lens[batch];
	int kv = head / (AXIS_H / AXIS_HKV);
	const int *pages = table + (long long)batch * maxp;
	double acc = 0.0, max = -1e300, sum = 0.0;

	qs[me] = (double)__bfloat162float(q[((long long)batch * AXIS_H + head) * AXIS_D + me]);
	for (int at = 0; at < len; at += AXIS_D) {
		__syncthreads();
		int j = at + me, n = min(AXIS_D, len - at);
		if (j < len) {
			long long row = ((long long)pages[j / AXIS_PAGE] * AXIS_PAGE + j % AXIS_PAGE) * AXIS_HKV + kv;
			double s = 0.0;
			for (int d = 0; d < AXIS_D; d++)
				s += qs[d] * (double)__bfloat162float(k[row * AXIS_D + d]);
			p[me] = s * (double)scale;
		}
		__syncthreads();
		double top = max; /* every thread does the same sums */
		for (int c = 0; c < n; c++)
			top = fmax(top, p[c]);
		double keep = max > -1e299 ? exp(max - top) : 0.0;
		__syncthreads();
		if (j < len)
			p[me] = exp(p[me] - top);
		__syncthreads();
		acc *= keep;
		sum *= keep;
		max = top;
		for (int c = 0; c < n; c++) {
			int key = at + c;
			long long row = ((long long)pages[key / AXIS_PAGE] * AXIS_PAGE + key % AXIS_PAGE) * AXIS_HKV + kv;
			acc += p[c] * (double)__bfloat162float(v[row * AXIS_D + me]);
			sum += p[c];
		}
	}
	o[((long long)batch * AXIS_H + head) * AXIS_D + me] = acc / sum;
}
