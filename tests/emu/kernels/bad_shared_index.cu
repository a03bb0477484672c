// launch: over grid=1 block=64 args=o
// modes: sanitize
// expect: sanitizer kernel.cu:10: index 63 is outside the array
// An index behind a static shared array.

__global__ void over(int *o)
{
	__shared__ int s[63];
	__shared__ int t[64];
	s[threadIdx.x] = 1;
	t[threadIdx.x] = 2;
	__syncthreads();
	o[1] = s[3] + t[4];
}
