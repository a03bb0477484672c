/* The loader asks resolve() which function to use: it runs before main. */
static float plain(float a, float b)
{
	return a + b;
}

extern "C" float (*resolve())(float, float);
float (*resolve())(float, float)
{
	return plain;
}

extern "C" float sum(float a, float b) __attribute__((ifunc("resolve")));

extern "C" __global__ void add(const float *x, const float *y, float *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n)
		out[i] = sum(x[i], y[i]);
}
