/* @NAME@: out[i] = alpha * x[i] + y[i]; each thread handles ITEMS elements a block apart. */
extern "C" __global__ void __launch_bounds__(BLOCK)
kernel(const float *__restrict__ x, const float *__restrict__ y, float *__restrict__ out, float alpha,
       int n)
{
	int first = blockIdx.x * ITEMS * BLOCK + threadIdx.x;
#pragma unroll
	for (int i = 0; i < ITEMS; i++) {
		int at = first + i * BLOCK;
		if (at < n)
			out[at] = alpha * x[at] + y[at];
	}
}
