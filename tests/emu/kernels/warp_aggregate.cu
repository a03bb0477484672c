// launch: filter grid=4 block=128 args=i,w,i32:500
// launch: check grid=1 block=1 args=o,i,w,i32:500
// Warp-aggregated append in a divergent branch: __activemask, leader's atomic, broadcast.

static __device__ void expect(unsigned *o, bool ok, unsigned where)
{
	atomicAdd(&o[1], 1u);
	if (!ok && atomicAdd(&o[0], 1u) == 0)
		o[2] = where;
}
__global__ void filter(const unsigned *in, unsigned *w, int n)
{
	for (int i = blockIdx.x * 128 + threadIdx.x; i < n; i += gridDim.x * 128) {
		if (in[i] % 3u != 0)
			continue;
		unsigned mask = __activemask();
		int lane = threadIdx.x & 31, leader = __ffs((int)mask) - 1;
		unsigned at = 0;
		if (lane == leader)
			at = atomicAdd(&w[0], (unsigned)__popc(mask));
		at = __shfl_sync(mask, at, leader) + __popc(mask & ((1u << lane) - 1u));
		w[1 + at] = in[i];
	}
}

__global__ void check(unsigned *o, const unsigned *in, unsigned *w, int n)
{
	unsigned count = 0, sum = 0;
	for (int k = 0; k < n; k++)
		if (in[k] % 3u == 0) {
			count++;
			sum += in[k];
		}
	for (unsigned k = 0; k < count; k++)
		sum -= w[1 + k];
	expect(o, w[0] == count && sum == 0, 1);
}
