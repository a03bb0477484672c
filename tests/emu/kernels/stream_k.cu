// launch: stream grid=6 block=32 args=o,i,w,i32:8,i32:40
// launch: check grid=1 block=1 args=o,i,w,i32:8,i32:40
// residency: 6
// Stream-K: six blocks share 8 tiles of 40 steps evenly; partial sums meet at semaphores.

static __device__ void expect(unsigned *o, bool ok, unsigned where)
{
	atomicAdd(&o[1], 1u);
	if (!ok && atomicAdd(&o[0], 1u) == 0)
		o[2] = where;
}
__global__ void stream(unsigned *o, const unsigned *in, unsigned *w, int tiles, int steps)
{
	unsigned *result = w, *flags = w + 1024, *partial = w + 2048;
	int total = tiles * steps, per = (total + gridDim.x - 1) / gridDim.x;
	int at = blockIdx.x * per, end = min(at + per, total);
	while (at < end) {
		int tile = at / steps, first = at % steps;
		int last = min(steps, first + (end - at));
		unsigned sum = 0;
		for (int k = first; k < last; k++)
			sum += in[(tile * steps + k) * 32 + threadIdx.x];
		if (first != 0) { /* not the owner: hand over */
			partial[blockIdx.x * 32 + threadIdx.x] = sum;
			__threadfence();
			__syncthreads();
			if (threadIdx.x == 0)
				atomicExch(&flags[blockIdx.x], 1u);
		} else {
			int have = last;
			for (int peer = blockIdx.x + 1; have < steps; peer++) {
				if (threadIdx.x == 0)
					while (atomicAdd(&flags[peer], 0u) == 0)
						;
				__syncthreads();
				__threadfence();
				sum += *(volatile unsigned *)&partial[peer * 32 + threadIdx.x];
				have += min(per, steps - have);
			}
			result[tile * 32 + threadIdx.x] = sum;
		}
		at += last - first;
	}
}

__global__ void check(unsigned *o, const unsigned *in, unsigned *w, int tiles, int steps)
{
	for (int t = 0; t < tiles; t++)
		for (int l = 0; l < 32; l++) {
			unsigned sum = 0;
			for (int k = 0; k < steps; k++)
				sum += in[(t * steps + k) * 32 + l];
			expect(o, w[t * 32 + l] == sum, 1);
		}
}
