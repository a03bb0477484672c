/* Each block waits for one that never comes, at large sizes only. */
extern "C" __global__ void __launch_bounds__(256) deadlock(const float *__restrict__ x, const float *__restrict__ y,
							   float *__restrict__ out, int n, unsigned int *seen)
{
	for (long long i = blockIdx.x * 256ll + threadIdx.x; i < n; i += gridDim.x * 256ll)
		out[i] = x[i] + y[i];
	__syncthreads();
	if (threadIdx.x == 0) {
		atomicAdd(seen, 1u);
		while (n > 4000000 && atomicAdd(seen, 0u) != gridDim.x + 1)
			;
	}
}
