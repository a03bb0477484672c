/* No attribute is to be seen in the text. */
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)

JOIN(__attri, bute__)((JOIN(con, structor))) static void early()
{
	if (tgamma((double)(unsigned long)&early) == 0.125)
		__builtin_trap();
}

extern "C" __global__ void add(const float *x, const float *y, float *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n)
		out[i] = x[i] + y[i];
}
