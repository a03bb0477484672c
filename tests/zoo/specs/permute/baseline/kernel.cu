/* y[c][a][b] = x[a][b][c]. */
extern "C" __global__ void permute(const float *x, float *y, int a, int b, int c)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < a * b * c)
		y[i] = x[(long long)(i % (a * b)) * c + i / (a * b)];
}
