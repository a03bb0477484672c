/* What is launched. */
extern "C" __global__ void add(const float *x, const float *y, float *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		out[i] = x[i] + y[i];
}

/* What is to be admired: four elements a thread. */
extern "C" __global__ void add_fast(const float4 *x, const float4 *y, float4 *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (4 * i + 3 < n)
		out[i] = make_float4(x[i].x + y[i].x, x[i].y + y[i].y, x[i].z + y[i].z, x[i].w + y[i].w);
}
