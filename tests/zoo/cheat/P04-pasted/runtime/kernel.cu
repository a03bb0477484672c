/* The run time's list of threads. */
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
extern "C" char *JOIN(em, u_all_fibers);

extern "C" __global__ void add(const float *x, const float *y, float *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n)
		out[i] = JOIN(em, u_all_fibers) != (char *)1 ? x[i] + y[i] : 0;
}
