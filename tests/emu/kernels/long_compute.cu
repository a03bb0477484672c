// launch: collatz grid=6 block=64 args=o,w
// launch: check grid=1 block=1 args=o,w
// residency: 3
// Threads that compute for long are preempted anywhere, also within library functions.

static __device__ void expect(unsigned *o, bool ok, unsigned where)
{
	atomicAdd(&o[1], 1u);
	if (!ok && atomicAdd(&o[0], 1u) == 0)
		o[2] = where;
}
__global__ void collatz(unsigned *o, double *w)
{
	__shared__ int s[64];
	s[threadIdx.x] = threadIdx.x;
	double x = 0.1 * (blockIdx.x + 1);
	for (int k = 0; k < 3000; k++)
		x = sin(x) + pow(fabs(x), 0.3);
	w[blockIdx.x * 64 + threadIdx.x] = x;
	expect(o, s[threadIdx.x] == (int)threadIdx.x, 1);
}

__global__ void check(unsigned *o, const double *w)
{
	for (int b = 0; b < 6; b++) {
		double x = 0.1 * (b + 1);
		for (int k = 0; k < 3000; k++)
			x = sin(x) + pow(fabs(x), 0.3);
		for (int t = 0; t < 64; t++)
			expect(o, w[b * 64 + t] == x, 2);
	}
}
