// launch: neighbour grid=4 block=32 args=o
// modes: race
// expect: race of another block at kernel.cu:
// A block reads what another one writes, with nothing between.

__global__ void neighbour(int *o)
{
	int i = blockIdx.x * 32 + threadIdx.x;
	o[8 + i] = i + 1;
	o[2000 + i] = o[8 + (i + 32) % 128];
}
