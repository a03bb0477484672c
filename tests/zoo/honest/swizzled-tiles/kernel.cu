/* 32 x 32 tiles of (a b, c); column k of row r lies at k ^ r, so that both directions are free of conflicts. */
extern "C" __global__ void __launch_bounds__(256) permute_tiles(const float *x, float *y, int ab, int c)
{
	__shared__ float tile[32][32];
	int tx = threadIdx.x % 32, ty = threadIdx.x / 32, k0 = blockIdx.x * 32, r0 = blockIdx.y * 32;

	for (int r = ty; r < 32; r += 8)
		if (r0 + r < ab && k0 + tx < c)
			tile[r][tx ^ r] = x[(long long)(r0 + r) * c + k0 + tx];
	__syncthreads();
	for (int k = ty; k < 32; k += 8)
		if (r0 + tx < ab && k0 + k < c)
			y[(long long)(k0 + k) * ab + r0 + tx] = tile[tx][k ^ tx];
}
