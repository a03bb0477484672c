// launch: shuffles grid=16 block=256 args=w
// residency: 8
// 100 shuffles of each of 4096 threads: 409600 shuffles.

__global__ void shuffles(int *w)
{
	int v = threadIdx.x;
	for (int k = 0; k < 20; k++)
		for (int d = 16; d; d /= 2)
			v += __shfl_xor_sync(0xffffffffu, v, d);
	w[blockIdx.x * 256 + threadIdx.x] = v;
}
