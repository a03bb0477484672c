// launch: work grid=5 block=64 args=w,i32:333
// launch: check grid=1 block=1 args=o,w,i32:333
// residency: 5
// Persistent blocks take tiles from a counter; the last block to end sums up.

static __device__ void expect(unsigned *o, bool ok, unsigned where)
{
	atomicAdd(&o[1], 1u);
	if (!ok && atomicAdd(&o[0], 1u) == 0)
		o[2] = where;
}
__global__ void work(unsigned *w, int tiles)
{
	__shared__ int tile;
	__shared__ bool last;
	for (;;) {
		if (threadIdx.x == 0)
			tile = (int)atomicAdd(&w[0], 1u);
		__syncthreads();
		int mine = tile;
		__syncthreads();
		if (mine >= tiles)
			break;
		atomicAdd(&w[16 + mine], threadIdx.x);
	}
	__threadfence();
	__syncthreads();
	if (threadIdx.x == 0)
		last = atomicInc(&w[1], gridDim.x - 1) == gridDim.x - 1;
	__syncthreads();
	if (last && threadIdx.x == 0) {
		unsigned sum = 0;
		for (int k = 0; k < tiles; k++)
			sum += *(volatile unsigned *)&w[16 + k];
		w[2] = sum;
	}
}

__global__ void check(unsigned *o, unsigned *w, int tiles)
{
	expect(o, w[2] == (unsigned)tiles * 2016u, 1);
	expect(o, w[1] == 0, 2);
}
