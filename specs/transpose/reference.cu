/* transpose into 8-byte elements. */
extern "C" __global__ void reference(const float *x, double *y, int rows, int cols)
{
	for (int r = blockIdx.x * blockDim.x + threadIdx.x; r < rows; r += gridDim.x * blockDim.x)
		for (int c = 0; c < cols; c++)
			y[(long long)c * rows + r] = (double)x[(long long)r * cols + c];
}
