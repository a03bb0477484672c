// launch: half grid=2 block=64 args=o
// expect: barrier_divergence waits at a warp operation kernel.cu:9 with mask 0xffffffff
// A warp operation names lanes that wait at a block barrier instead.

__global__ void half(int *o)
{
	if (threadIdx.x & 1)
		__syncthreads();
	o[threadIdx.x] = __shfl_xor_sync(0xffffffffu, threadIdx.x, 1);
	__syncthreads();
}
