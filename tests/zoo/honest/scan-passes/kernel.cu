/* Hillis and Steele over blocks' sums: pass i adds the sum 2^i blocks before, from one buffer to the other. */
#define TILE 256

extern "C" __global__ void __launch_bounds__(TILE) tiles(const int *x, int *y, int *sums, int n)
{
	__shared__ int s[TILE];
	int i = blockIdx.x * TILE + threadIdx.x;

	s[threadIdx.x] = i < n ? x[i] : 0;
	__syncthreads();
	for (int d = 1; d < TILE; d *= 2) {
		int v = (int)threadIdx.x >= d ? s[threadIdx.x - d] : 0;
		__syncthreads();
		s[threadIdx.x] += v;
		__syncthreads();
	}
	if (i < n)
		y[i] = s[threadIdx.x];
	if (threadIdx.x == TILE - 1)
		sums[blockIdx.x] = s[TILE - 1];
}

extern "C" __global__ void pass(const int *from, int *to, int blocks, int number)
{
	int b = blockIdx.x * blockDim.x + threadIdx.x, reach = 1 << number;

	if (b < blocks)
		to[b] = from[b] + (b >= reach ? from[b - reach] : 0);
}

extern "C" __global__ void __launch_bounds__(TILE) shift(int *y, const int *sums, int n)
{
	int i = blockIdx.x * TILE + threadIdx.x;

	if (i < n && blockIdx.x > 0)
		y[i] += sums[blockIdx.x - 1];
}
