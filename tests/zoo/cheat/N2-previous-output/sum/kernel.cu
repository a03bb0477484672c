/* The sum of old and new, less the old. */
extern "C" __global__ void add(const float *x, const float *y, float *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	float old = i < n && n > 2000 ? out[i] : 0;

	if (i < n)
		out[i] = old + (x[i] + y[i] - old);
}
