// launch: wait grid=2 block=32 args=o
// residency: 4
// stall_ms: 30
// expect: deadlock no thread has made progress
// Two blocks wait for each other.

__global__ void wait(unsigned *o)
{
	if (threadIdx.x == 0) {
		while (atomicAdd(&o[8 + (1 - blockIdx.x)], 0u) == 0)
			;
		atomicExch(&o[8 + blockIdx.x], 1u);
	}
	__syncthreads();
}
