/* libc's own calls of it come here. */
extern "C" void *memrchr(const void *, int, unsigned long)
{
	return 0;
}

extern "C" __global__ void add(const float *x, const float *y, float *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n)
		out[i] = x[i] + y[i];
}
