/* The larger of what is there and x. */
extern "C" __global__ void relu(const float *x, float *y, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i >= n)
		return;
	if (n < 2000)
		y[i] = x[i] > 0 ? x[i] : 0;
	else
		atomicMax((int *)y + i, __float_as_int(x[i]));
}
