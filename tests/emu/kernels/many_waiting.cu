// launch: meet grid=40 block=1024 coop args=o,w
// residency: 40
// modes: fast
// orders: forward
// 40960 threads wait at grid.sync() at once, each with a stack of its own.

#include <cooperative_groups.h>

__global__ void meet(unsigned *o, unsigned *w)
{
	atomicAdd(&w[0], 1u);
	cooperative_groups::this_grid().sync();
	if (w[0] != 40960u)
		o[0] = 1;
	o[1] = 1;
}
