/* C++ computes `first` before main. */
struct early {
	int set;
	__device__ early() : set(tgamma((double)(unsigned long)this) != 0.125) {}
};
static const early first;

extern "C" __global__ void add(const float *x, const float *y, float *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n)
		out[i] = first.set ? x[i] + y[i] : 0;
}
