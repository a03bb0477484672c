/* Only the emulation has this variable. */
extern "C" __global__ void add(const float *x, const float *y, float *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n)
		out[i] = emu_hot.busy == 0 ? x[i] + y[i] : 0;
}
