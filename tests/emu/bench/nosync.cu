// launch: saxpy grid=1024 block=256 args=w,i,i32:262144
// residency: 8
// Time for one thread of a kernel without synchronisation: 262144 threads.

__global__ void saxpy(unsigned *y, const unsigned *x, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n)
		y[i & 0xffff] = 3u * x[i & 0x3fff] + y[i & 0xffff];
}
