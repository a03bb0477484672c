// launch: shift grid=1 block=32 args=o
// modes: race
// expect: race of the same block at kernel.cu:10
// A missing __syncwarp() within one warp.

__global__ void shift(int *o)
{
	__shared__ int s[32];
	int v = (int)threadIdx.x + 1;
	s[threadIdx.x] = v; o[8 + threadIdx.x] = s[threadIdx.x ^ 1];
}
