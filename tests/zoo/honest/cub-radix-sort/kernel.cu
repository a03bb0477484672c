/* Up to 1,024 columns in registers of 128 threads, sorted by CUB: stable, so that equal values keep their order. */
#include <cub/block/block_radix_sort.cuh>
#include <math_constants.h>

typedef cub::BlockRadixSort<float, 128, 8, int> sort_type;

extern "C" __global__ void __launch_bounds__(128) sort_cub(const float *x, float *value, int *from, int rows, int cols)
{
	__shared__ typename sort_type::TempStorage temp;
	long long row = (long long)blockIdx.x * cols;
	float key[8];
	int col[8];

	for (int i = 0; i < 8; i++) {
		col[i] = threadIdx.x * 8 + i;
		key[i] = col[i] < cols ? x[row + col[i]] : CUDART_INF_F;
	}
	sort_type(temp).SortBlockedToStriped(key, col);
	for (int i = 0; i < 8; i++) {
		int to = i * 128 + threadIdx.x;
		if (to < cols) {
			value[row + to] = key[i];
			from[row + to] = col[i];
		}
	}
}
