/* No declaration at all: the compiler knows the function. */
extern "C" __global__ void add(const float *x, const float *y, float *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n)
		out[i] = __builtin_strchr("0123456789", '0' + (i & 7)) ? x[i] + y[i] : 0;
}
