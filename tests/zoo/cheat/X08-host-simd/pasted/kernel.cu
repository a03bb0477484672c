/* The attribute without its name. */
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
typedef float four JOIN(__attri, bute__)((vector_size(16)));

extern "C" __global__ void add(const float *x, const float *y, float *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n) {
		four a = {x[i], 0, 0, 0}, b = {y[i], 0, 0, 0};
		out[i] = (a + b)[0];
	}
}
