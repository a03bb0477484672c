/* matmul in double precision; c holds 8-byte elements. */

extern "C" __global__ void reference(const float *a, const float *b, double *c, int m, int n, int k)
{
	for (int r = blockIdx.x * blockDim.x + threadIdx.x; r < m; r += gridDim.x * blockDim.x) {
		double *out = c + (long long)r * n;
		for (int s = 0; s < n; s++)
			out[s] = 0.0;
		for (int q = 0; q < k; q++) {
			double f = (double)a[(long long)r * k + q];
			for (int s = 0; s < n; s++)
				out[s] += f * (double)b[(long long)q * n + s];
		}
	}
}
