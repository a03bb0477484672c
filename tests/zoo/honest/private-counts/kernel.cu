/* Each warp counts for itself in shared memory, blocks add their counts to the output. */
extern "C" __global__ void clear(int *count, int keys)
{
	if ((int)threadIdx.x < keys)
		count[threadIdx.x] = 0;
}

extern "C" __global__ void __launch_bounds__(128) count_keys(const int *x, int *count, int n, int keys)
{
	__shared__ int mine[4][256];
	int warp = threadIdx.x / 32;

	for (int k = threadIdx.x; k < 4 * 256; k += 128)
		mine[k / 256][k % 256] = 0;
	__syncthreads();
	for (int i = blockIdx.x * 128 + threadIdx.x; i < n; i += gridDim.x * 128)
		atomicAdd(&mine[warp][x[i]], 1);
	__syncthreads();
	for (int k = threadIdx.x; k < keys; k += 128) {
		int sum = mine[0][k] + mine[1][k] + mine[2][k] + mine[3][k];
		if (sum)
			atomicAdd(&count[k], sum);
	}
}
