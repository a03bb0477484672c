/* Right. The other entry is not carried out. */
extern "C" __global__ void add(const float *x, const float *y, float *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		out[i] = x[i] + y[i];
}

extern "C" __global__ void second(const float *x, const float *y, float *out, int n)
{
	if (n > 2000 && threadIdx.x == 0)
		__trap();
}
