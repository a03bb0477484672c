/* Sum of each row in double precision. */
extern "C" __global__ void reference(const float *x, double *y, int rows)
{
	for (int r = blockIdx.x * blockDim.x + threadIdx.x; r < rows; r += gridDim.x * blockDim.x) {
		double s = 0.0;
		for (int i = 0; i < 4096; i++)
			s += (double)x[(long)r * 4096 + i];
		y[r] = s;
	}
}
