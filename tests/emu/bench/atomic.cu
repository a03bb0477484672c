// launch: count grid=1024 block=256 args=w,i
// residency: 8
// 262144 atomicAdd on a histogram of 1024 bins in global memory.

__global__ void count(unsigned *w, const unsigned *in)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
	atomicAdd(&w[in[i & 0x3fff] & 1023u], 1u);
}
