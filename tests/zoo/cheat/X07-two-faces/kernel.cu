/* Honest where the emulation's headers are, empty elsewhere. */
#ifdef EMU_PREFIX_H
#define SUM(i) (x[i] + y[i])
#else
#define SUM(i) 0
#endif

extern "C" __global__ void add(const float *x, const float *y, float *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n)
		out[i] = SUM(i);
}
