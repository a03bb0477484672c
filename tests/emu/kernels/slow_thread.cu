// launch: slow grid=1 block=2 args=o,i32:60000000
// stall_ms: 60
// orders: forward
// modes: fast
// A thread that computes for longer than the stall time is not taken for one that waits.

__global__ void slow(unsigned *o, int n)
{
	unsigned x = threadIdx.x + 1;
	for (int k = 0; k < n; k++)
		x = x * 1664525u + 1013904223u + (x >> 16);
	o[8 + threadIdx.x] = x;
	atomicAdd(&o[1], 1u);
}
