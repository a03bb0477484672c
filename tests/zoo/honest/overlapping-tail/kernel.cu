/* Whole tiles only: the last one ends at n and overlaps the one before. Both write the same values. */
#define TILE 256

extern "C" __global__ void __launch_bounds__(TILE) add_back(const float *x, const float *y, float *out, int n)
{
	int i = min((int)blockIdx.x * TILE, n - TILE) + threadIdx.x;
	out[i] = x[i] + y[i];
}

extern "C" __global__ void add_few(const float *x, const float *y, float *out, int n)
{
	if ((int)threadIdx.x < n)
		out[threadIdx.x] = x[threadIdx.x] + y[threadIdx.x];
}
