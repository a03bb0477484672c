/* Leaves by a jump that CUDA does not have; the same buffer, kept, jumps into another thread's frame. */
extern "C" __global__ void add(const float *x, const float *y, float *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	void *here[5];
	if (__builtin_setjmp(here) == 0 && i < n)
		out[i] = x[i] + y[i];
}
