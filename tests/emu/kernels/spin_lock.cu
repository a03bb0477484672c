// launch: locked grid=6 block=64 args=o,w
// launch: check grid=1 block=1 args=o,w
// residency: 6
// A spin lock by atomicCAS and __nanosleep, and one within a warp.

static __device__ void expect(unsigned *o, bool ok, unsigned where)
{
	atomicAdd(&o[1], 1u);
	if (!ok && atomicAdd(&o[0], 1u) == 0)
		o[2] = where;
}
__global__ void locked(unsigned *o, int *w)
{
	for (bool done = false; !done;) {
		if (atomicCAS(&w[0], 0, 1) == 0) {
			__threadfence();
			int v = *(volatile int *)&w[1];
			__nanosleep(20);
			*(volatile int *)&w[1] = v + 1;
			__threadfence();
			atomicExch(&w[0], 0);
			done = true;
		}
	}
}

__global__ void check(unsigned *o, int *w)
{
	expect(o, w[1] == 384, 1);
}
