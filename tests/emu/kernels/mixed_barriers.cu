// launch: split grid=2 block=64 args=o
// mixed
// Different __syncthreads() lines are accepted where the script says so.

__global__ void split(unsigned *o)
{
	__shared__ unsigned s[64];
	s[threadIdx.x] = threadIdx.x;
	if (threadIdx.x < 32)
		__syncthreads();
	else
		__syncthreads();
	if (s[63 - threadIdx.x] != 63 - threadIdx.x)
		atomicAdd(&o[0], 1u);
	atomicAdd(&o[1], 1u);
}
