/* softmax in double precision; y holds 8-byte elements. */
extern "C" __global__ void reference(const float *x, double *y, int rows, int cols)
{
	for (int r = blockIdx.x * blockDim.x + threadIdx.x; r < rows; r += gridDim.x * blockDim.x) {
		const float *in = x + (long long)r * cols;
		double *out = y + (long long)r * cols;
		double max = (double)in[0], sum = 0.0;
		for (int c = 1; c < cols; c++)
			max = fmax(max, (double)in[c]);
		for (int c = 0; c < cols; c++) {
			out[c] = exp((double)in[c] - max);
			sum += out[c];
		}
		for (int c = 0; c < cols; c++)
			out[c] /= sum;
	}
}
