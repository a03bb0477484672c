/* Thread i takes element i * 7 mod n, where 7 does not divide n; blocks come from the end. */
extern "C" __global__ void add_scattered(const float *x, const float *y, float *out, int n)
{
	long long i = (long long)(gridDim.x - 1 - blockIdx.x) * blockDim.x + threadIdx.x;

	if (i >= n)
		return;
	int at = n % 7 ? (int)(i * 7 % n) : n - 1 - (int)i;
	out[at] = x[at] + y[at];
}
