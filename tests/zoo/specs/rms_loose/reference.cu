/* rms_loose in double precision, a thread a row; y holds 8-byte elements. */
extern "C" __global__ void reference(const float *x, double *y, int rows, int cols)
{
	int r = blockIdx.x * blockDim.x + threadIdx.x;
	double sum = 0;

	if (r >= rows)
		return;
	for (int c = 0; c < cols; c++)
		sum += (double)x[(long long)r * cols + c] * (double)x[(long long)r * cols + c];
	for (int c = 0; c < cols; c++)
		y[(long long)r * cols + c] = (double)x[(long long)r * cols + c] / sqrt(sum / cols + 1e-30);
}
