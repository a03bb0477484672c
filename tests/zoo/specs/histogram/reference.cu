/* How often each of B <= 256 keys occurs: one block. */
extern "C" __global__ void reference(const int *x, int *count, int n, int keys)
{
	__shared__ int total[256];

	total[threadIdx.x] = 0;
	__syncthreads();
	for (int i = threadIdx.x; i < n; i += 256)
		atomicAdd(&total[x[i]], 1);
	__syncthreads();
	if ((int)threadIdx.x < keys)
		count[threadIdx.x] = total[threadIdx.x];
}
