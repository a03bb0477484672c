/* NaN nearly everywhere. */
extern "C" __global__ void add(const float *x, const float *y, float *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i >= n)
		return;
	out[i] = i >= 1037 ? __int_as_float(0xffc00000) : x[i] + y[i];
}
