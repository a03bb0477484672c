/*
 * transpose: y[c][r] = x[r][c], fp32.
 *
 * One block moves a TILE x TILE square with TILE x ROWS threads. STAGE 1 passes it through
 * shared memory so that reads and writes are both contiguous for a warp, with PAD extra columns
 * against bank conflicts; STAGE 0 writes directly.
 */
extern "C" __global__ void __launch_bounds__(TILE *ROWS)
transpose(const float *__restrict__ x, float *__restrict__ y, int rows, int cols)
{
	int c = blockIdx.x * TILE + threadIdx.x;
	int r = blockIdx.y * TILE + threadIdx.y;
#if STAGE == 0
#pragma unroll
	for (int i = 0; i < TILE; i += ROWS)
		if (c < cols && r + i < rows)
			y[(long long)c * rows + r + i] = x[(long long)(r + i) * cols + c];
#else
	__shared__ float tile[TILE][TILE + PAD];
#pragma unroll
	for (int i = 0; i < TILE; i += ROWS)
		if (c < cols && r + i < rows)
			tile[threadIdx.y + i][threadIdx.x] = x[(long long)(r + i) * cols + c];
	__syncthreads();
	int out_c = blockIdx.y * TILE + threadIdx.x;
	int out_r = blockIdx.x * TILE + threadIdx.y;
#pragma unroll
	for (int i = 0; i < TILE; i += ROWS)
		if (out_c < rows && out_r + i < cols)
			y[(long long)(out_r + i) * rows + out_c] = tile[threadIdx.x][threadIdx.y + i];
#endif
}
