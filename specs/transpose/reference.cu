/* transpose into 8-byte elements: one block a 32 x 32 tile, straight from row to column. */
extern "C" __global__ void reference(const float *x, double *y, int rows, int cols)
{
	int c = blockIdx.x * 32 + threadIdx.x;

	for (int r = blockIdx.y * 32 + threadIdx.y; r < rows && r < (int)(blockIdx.y + 1) * 32; r += 8)
		if (c < cols)
			y[(long long)c * rows + r] = (double)x[(long long)r * cols + c];
}
