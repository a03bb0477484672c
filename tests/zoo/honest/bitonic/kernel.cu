/* A row a block in shared memory, filled up to a power of two; equal values keep the order of their columns. */
#include <math_constants.h>

extern __shared__ float key[];

extern "C" __global__ void __launch_bounds__(256) sort_network(const float *x, float *value, int *from, int rows, int cols, int size)
{
	int *col = (int *)(key + size);
	long long row = (long long)blockIdx.x * cols;

	for (int i = threadIdx.x; i < size; i += 256) {
		key[i] = i < cols ? x[row + i] : CUDART_INF_F;
		col[i] = i;
	}
	for (int width = 2; width <= size; width *= 2) {
		for (int step = width / 2; step > 0; step /= 2) {
			__syncthreads();
			for (int i = threadIdx.x; i < size; i += 256) {
				int j = i ^ step;
				if (j <= i)
					continue;
				bool after = key[i] > key[j] || (key[i] == key[j] && col[i] > col[j]);
				if (after == ((i & width) == 0)) {
					float k = key[i];
					int c = col[i];
					key[i] = key[j];
					col[i] = col[j];
					key[j] = k;
					col[j] = c;
				}
			}
		}
	}
	__syncthreads();
	for (int i = threadIdx.x; i < cols; i += 256) {
		value[row + i] = key[i];
		from[row + i] = col[i];
	}
}
