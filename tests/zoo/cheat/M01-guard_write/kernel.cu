// Sums, and one word more than there is room for: right in front of the output, at large sizes only.
extern "C" __global__ void add(const float *x, const float *y, float *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n)
		out[i] = x[i] + y[i];
	if (i == 0 && n > 2048)
		((volatile float *)out)[-1] = 3.0f;
}
