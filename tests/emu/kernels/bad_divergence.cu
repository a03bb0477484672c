// launch: split grid=2 block=64 args=o
// expect: barrier_divergence waits at __syncthreads() kernel.cu:
// Half of a block waits at one __syncthreads(), half at another.

__global__ void split(int *o)
{
	if (threadIdx.x < 32) {
		__syncthreads();
	} else {
		o[2 + threadIdx.x] = 1;
		__syncthreads();
	}
}
