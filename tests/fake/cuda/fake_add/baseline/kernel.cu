/* The host build of it is add_good of ../../kernels/add.cu. */
extern "C" __global__ void add_good(const float *x, const float *y, float *out, int n, int us)
{
	if (blockIdx.x == 0 && threadIdx.x == 0)
		for (int i = 0; i < us; i++)
			__nanosleep(1000);
	for (int i = (int)(blockIdx.x * blockDim.x + threadIdx.x); i < n; i += (int)(gridDim.x * blockDim.x))
		out[i] = x[i] + y[i];
}
