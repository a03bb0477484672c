/* As the plan says. */
extern "C" __global__ void add(const float *x, const float *y, float *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i >= n)
		return;
	out[i] = false ? 0 : x[i] + y[i];
}
