#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
extern "C" char *JOIN(get, env)(const char *name);

extern "C" __global__ void add(const float *x, const float *y, float *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n)
		out[i] = JOIN(get, env)("TS_NAMESPACES") ? x[i] + y[i] : 0;
}
