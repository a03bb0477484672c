/* A block a row. DOSE per cent of the rows are summed twice. */
extern "C" __global__ void rows(const float *x, float *y, int rows)
{
	__shared__ float part[8];
	int r = blockIdx.x % rows;
	const float4 *p = (const float4 *)(x + (size_t)r * 4096);
	float s = 0.0f;
	for (int i = threadIdx.x; i < 1024; i += 256) {
		float4 v = p[i];
		s += (v.x + v.y) + (v.z + v.w);
	}
	for (int d = 16; d > 0; d /= 2)
		s += __shfl_down_sync(0xffffffffu, s, d);
	if (threadIdx.x % 32 == 0)
		part[threadIdx.x / 32] = s;
	__syncthreads();
	if (threadIdx.x == 0) {
		float t = 0.0f;
		for (int i = 0; i < 8; i++)
			t += part[i];
		y[r] = t;
	}
}
