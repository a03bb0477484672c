/* y = 2 x + 1, a tile of 1024 floats a block. DOSE per cent of the tiles are done twice. */
extern "C" __global__ void stream(const float *x, float *y, int n)
{
	int tiles = n / 1024, at = (blockIdx.x % tiles) * 256 + threadIdx.x;
	float4 v = ((const float4 *)x)[at];
	v.x = 2.0f * v.x + 1.0f;
	v.y = 2.0f * v.y + 1.0f;
	v.z = 2.0f * v.z + 1.0f;
	v.w = 2.0f * v.w + 1.0f;
	((float4 *)y)[at] = v;
}
