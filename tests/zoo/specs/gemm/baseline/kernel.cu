/* c = a * b, one element a thread. */
extern "C" __global__ void gemm(const float *a, const float *b, float *c, int m, int n, int k)
{
	int col = blockIdx.x * 16 + threadIdx.x % 16, row = blockIdx.y * 16 + threadIdx.x / 16;
	float sum = 0;

	if (row >= m || col >= n)
		return;
	for (int q = 0; q < k; q++)
		sum += (float)a[(long long)row * k + q] * (float)b[(long long)q * n + col];
	c[(long long)row * n + col] = (float)sum;
}
