// Throws the input's lines away behind itself.
extern "C" __global__ void add(const float *x, const float *y, float *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n)
		out[i] = x[i] + y[i];
	if (i % 32 == 0 && i < n)
		asm volatile("discard.global.L2 [%0], 128;" ::"l"(x + i) : "memory");
}
