/* Part p of k leaves its sums in the workspace; the second launch adds the parts in a fixed order. */
extern "C" __global__ void __launch_bounds__(256) part(const float *a, const float *b, float *sums, int m, int n, int k, int per)
{
	int col = blockIdx.x * 16 + threadIdx.x % 16, row = blockIdx.y * 16 + threadIdx.x / 16;
	int from = blockIdx.z * per, to = min(k, from + per);
	float sum = 0.0f;

	if (row >= m || col >= n)
		return;
	for (int q = from; q < to; q++)
		sum += a[(long long)row * k + q] * b[(long long)q * n + col];
	sums[((long long)blockIdx.z * m + row) * n + col] = sum;
}

extern "C" __global__ void join(const float *sums, float *c, int size, int parts)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	float sum = 0.0f;

	if (i >= size)
		return;
	for (int p = 0; p < parts; p++)
		sum += sums[(long long)p * size + i];
	c[i] = sum;
}
