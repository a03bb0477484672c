// launch: barriers grid=16 block=256 args=w
// residency: 8
// 100 barriers of 256 threads in 16 blocks: 409600 waits.

__global__ void barriers(int *w)
{
	__shared__ int s[256];
	int sum = 0;
	for (int k = 0; k < 50; k++) {
		s[threadIdx.x] = k + sum;
		__syncthreads();
		sum += s[255 - threadIdx.x];
		__syncthreads();
	}
	w[blockIdx.x * 256 + threadIdx.x] = sum;
}
