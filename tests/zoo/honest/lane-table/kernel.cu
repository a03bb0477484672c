/* Lane i holds level i % 16; a shuffle is the look-up. All 32 lanes take part, also beyond the end. */
extern "C" __global__ void dequant_lanes(const unsigned char *code, const float *scale, float *y, int n)
{
	const float level[16] = {
		-1.0f, -0.6961928f, -0.52507305f, -0.3949175f, -0.28444138f, -0.18477343f, -0.091050036f, 0.0f,
		0.0795803f, 0.1609302f, 0.2461123f, 0.33791524f, 0.44070983f, 0.562617f, 0.72295684f, 1.0f,
	};
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	float mine = level[threadIdx.x % 16];
	float v = __shfl_sync(~0u, mine, i < n ? code[i] : 0);

	if (i < n)
		y[i] = v * scale[i / 32];
}
