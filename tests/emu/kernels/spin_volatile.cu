// launch: wait grid=4 block=32 args=o,w
// residency: 4
// A volatile spin with no other hint must not hang: block 0 waits for block 3.

static __device__ void expect(unsigned *o, bool ok, unsigned where)
{
	atomicAdd(&o[1], 1u);
	if (!ok && atomicAdd(&o[0], 1u) == 0)
		o[2] = where;
}
__global__ void wait(unsigned *o, int *flag)
{
	int next = (blockIdx.x + 1) % gridDim.x;
	if (threadIdx.x == 0) {
		if (blockIdx.x != gridDim.x - 1)
			while (*(volatile int *)&flag[next] == 0)
				;
		__threadfence();
		*(volatile int *)&flag[blockIdx.x] = 1;
	}
	__syncthreads();
	expect(o, *(volatile int *)&flag[next] == 1 || blockIdx.x == gridDim.x - 1, 1);
}
