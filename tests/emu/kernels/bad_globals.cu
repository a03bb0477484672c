// launch: count grid=2 block=32 args=o
// norun
// scan: "writable":\["_ZZ5countPjE5calls","state"\]
// Module state: elfscan names it, guard refuses it.

__device__ unsigned state;
__device__ const int fine[4] = {1, 2, 3, 4};

__global__ void count(unsigned *o)
{
	static int calls = 3;
	state += fine[threadIdx.x & 3];
	calls++;
	o[1] = 1;
	o[3] = state + calls;
}
