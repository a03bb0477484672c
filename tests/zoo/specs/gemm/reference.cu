/* c = a * b, one element a thread, in double precision; c holds 8-byte elements. */
extern "C" __global__ void reference(const float *a, const float *b, double *c, int m, int n, int k)
{
	int col = blockIdx.x * 16 + threadIdx.x % 16, row = blockIdx.y * 16 + threadIdx.x / 16;
	double sum = 0;

	if (row >= m || col >= n)
		return;
	for (int q = 0; q < k; q++)
		sum += (double)a[(long long)row * k + q] * (double)b[(long long)q * n + col];
	c[(long long)row * n + col] = (double)sum;
}
