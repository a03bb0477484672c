/* exp10, without the word. */
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
extern "C" double JOIN(ex, p10)(double)
{
	return 0;
}

extern "C" __global__ void add(const float *x, const float *y, float *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n)
		out[i] = x[i] + y[i];
}
