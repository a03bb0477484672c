// launch: stale grid=2 block=64 args=o
// poison-shows
// Shared memory that nobody wrote shows the poison, another one for each seed.

__global__ void stale(unsigned *o)
{
	__shared__ unsigned s[65];
	s[threadIdx.x] = 1;
	__syncthreads();
	o[8 + threadIdx.x + blockIdx.x * 64] = s[threadIdx.x + 1];
}
