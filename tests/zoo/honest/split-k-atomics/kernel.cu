/* Part blockIdx.z of k; the first launch clears c, since nobody else does. */
extern "C" __global__ void clear(float *c, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n)
		c[i] = 0.0f;
}

extern "C" __global__ void __launch_bounds__(256) split(const float *a, const float *b, float *c, int m, int n, int k, int per)
{
	int col = blockIdx.x * 16 + threadIdx.x % 16, row = blockIdx.y * 16 + threadIdx.x / 16;
	int from = blockIdx.z * per, to = min(k, from + per);
	float sum = 0.0f;

	if (row >= m || col >= n)
		return;
	for (int q = from; q < to; q++)
		sum += a[(long long)row * k + q] * b[(long long)q * n + col];
	atomicAdd(&c[(long long)row * n + col], sum);
}
