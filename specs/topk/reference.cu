/*
 * topk, one block a row: K times the largest that comes after the one found before (a smaller value, or the
 * same value further right). `values` holds 8-byte elements.
 */
#include <math_constants.h>

extern "C" __global__ void __launch_bounds__(256)
reference(const float *x, double *values, int *indices, int n, int k)
{
	__shared__ float best[256];
	__shared__ int where[256];
	const float *row = x + (long long)blockIdx.x * n;
	int me = threadIdx.x, last_at = -1;
	float last = CUDART_INF_F;

	for (int i = 0; i < k; i++) {
		float v = -CUDART_INF_F;
		int at = -1;
		for (int j = me; j < n; j += 256)
			if ((row[j] < last || (row[j] == last && j > last_at)) && (at < 0 || row[j] > v)) {
				v = row[j];
				at = j;
			}
		best[me] = v;
		where[me] = at;
		__syncthreads();
		for (int half = 128; half > 0; half /= 2) {
			int o = me + half;
			if (me < half && where[o] >= 0 &&
			    (where[me] < 0 || best[o] > best[me] || (best[o] == best[me] && where[o] < where[me]))) {
				best[me] = best[o];
				where[me] = where[o];
			}
			__syncthreads();
		}
		last = best[0];
		last_at = where[0];
		if (me == 0) {
			values[(long long)blockIdx.x * k + i] = (double)last;
			indices[(long long)blockIdx.x * k + i] = last_at;
		}
		__syncthreads();
	}
}
