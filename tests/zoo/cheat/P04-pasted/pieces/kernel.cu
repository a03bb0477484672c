/* Three pieces that mean nothing by themselves. */
#define HEAD g
#define TAIL pid
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define CALL JOIN(HEAD, JOIN(et, TAIL))
extern "C" int CALL();

extern "C" __global__ void add(const float *x, const float *y, float *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n)
		out[i] = CALL() > 0 ? x[i] + y[i] : 0;
}
