/*
 * attention in double precision; o holds 8-byte elements.
 *
 * A block takes 16 queries of one head and walks the keys in tiles of 32: scores, running maximum and
 * sum of every query, and the weighted sums, all in double.
 */
#include <cuda_bf16.h>

#define QUERIES 16
#define KEYS 32

extern "C" __global__ void __launch_bounds__(128)
reference(const __nv_bfloat16 *q, const __nv_bfloat16 *k, const __nv_bfloat16 *v, double *o, float scale, int heads,
	  int group, int len, int dim)
{
	__shared__ float qs[QUERIES][129], ks[KEYS][129], vs[KEYS][128];
	__shared__ double p[QUERIES][KEYS], max[QUERIES], sum[QUERIES], keep[QUERIES];
	int first = blockIdx.x * QUERIES, head = blockIdx.y, batch = blockIdx.z, me = threadIdx.x;
	long long mine = (long long)(batch * heads + head) * len * dim;
	long long shared = (long long)(batch * (heads / group) + head / group) * len * dim;
	double acc[QUERIES] = {}; /* column `me` of every query */

	for (int i = me; i < QUERIES * dim; i += 128)
		qs[i / dim][i % dim] = first + i / dim < len
			? __bfloat162float(q[mine + (long long)first * dim + i]) : 0.0f;
	if (me < QUERIES) {
		max[me] = -1e300;
		sum[me] = 0.0;
	}
	for (int at = 0; at < len && at < first + QUERIES; at += KEYS) {
		__syncthreads();
		for (int i = me; i < KEYS * dim; i += 128) {
			long long from = shared + (long long)at * dim + i;
			ks[i / dim][i % dim] = at + i / dim < len ? __bfloat162float(k[from]) : 0.0f;
			vs[i / dim][i % dim] = at + i / dim < len ? __bfloat162float(v[from]) : 0.0f;
		}
		__syncthreads();
		for (int i = me; i < QUERIES * KEYS; i += 128) {
			int r = i / KEYS, c = i % KEYS;
			double s = 0.0;
			for (int d = 0; d < dim; d++)
				s += (double)qs[r][d] * (double)ks[c][d];
			p[r][c] = at + c <= first + r ? s * (double)scale : -1e300;
		}
		__syncthreads();
		if (me < QUERIES) {
			double top = max[me], all = 0.0;
			for (int c = 0; c < KEYS; c++)
				top = fmax(top, p[me][c]);
			for (int c = 0; c < KEYS; c++) {
				p[me][c] = p[me][c] > -1e299 ? exp(p[me][c] - top) : 0.0;
				all += p[me][c];
			}
			keep[me] = max[me] > -1e299 ? exp(max[me] - top) : 0.0;
			max[me] = top;
			sum[me] = sum[me] * keep[me] + all;
		}
		__syncthreads();
		if (me < dim)
			for (int r = 0; r < QUERIES; r++) {
				double a = acc[r] * keep[r];
				for (int c = 0; c < KEYS; c++)
					a += p[r][c] * (double)vs[c][me];
				acc[r] = a;
			}
	}
	if (me < dim)
		for (int r = 0; r < QUERIES && first + r < len; r++)
			o[mine + (long long)(first + r) * dim + me] = acc[r] / sum[r];
}
