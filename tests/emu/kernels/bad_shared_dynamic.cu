// launch: over grid=1 block=64 shared=252 args=o
// modes: sanitize
// expect: sanitizer thread (63,0,0), kernel.cu:9: write of 4 bytes at shared memory, byte 252 of 252 dynamic ones
// orders: forward
// A write behind the dynamic shared memory of the launch.

__global__ void over(int *o)
{
	extern __shared__ int s[]; s[threadIdx.x] = 1;
	__syncthreads();
	o[1] = s[3];
}
