// launch: shift grid=2 block=64 args=o
// modes: race
// expect: race race: a 
// A missing __syncthreads() between a write to shared memory and its reader in another warp.

__global__ void shift(int *o)
{
	__shared__ int s[64];
	s[threadIdx.x] = (int)threadIdx.x + 1;
	o[8 + blockIdx.x * 64 + threadIdx.x] = s[(threadIdx.x + 32) & 63];
}
