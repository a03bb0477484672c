// launch: votes grid=3 block=96,2 args=o
// __syncthreads and its counting forms, with early returns before and barriers in loops.

static __device__ void expect(unsigned *o, bool ok, unsigned where)
{
	atomicAdd(&o[1], 1u);
	if (!ok && atomicAdd(&o[0], 1u) == 0)
		o[2] = where;
}
__global__ void votes(unsigned *o)
{
	int t = threadIdx.x + threadIdx.y * blockDim.x;
	if (t >= 190)
		return;
	for (int k = 1; k < 6; k++) {
		expect(o, __syncthreads_count(t % k == 0) == (190 + k - 1) / k, 1);
		expect(o, __syncthreads_and(t >= 0) == 1, 2);
		expect(o, __syncthreads_and(t != 77) == 0, 3);
		expect(o, __syncthreads_or(t == 189) == 1, 4);
		expect(o, __syncthreads_or(t == 190) == 0, 5);
		__syncthreads();
	}
	if (t > 50)
		return;
	__syncthreads();
	expect(o, __syncthreads_count(1) == 51, 6);
}
