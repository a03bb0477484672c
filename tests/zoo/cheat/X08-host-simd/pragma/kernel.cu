/* A loop for the host's vectoriser. */
extern "C" __global__ void add(const float *x, const float *y, float *out, int n)
{
	int first = (blockIdx.x * blockDim.x + threadIdx.x);
#pragma GCC ivdep
	for (int i = first; i < n && i < first + 1; i++)
		out[i] = x[i] + y[i];
}
