/* rmsnorm in double precision; y holds 8-byte elements. */
#include <cuda_bf16.h>

extern "C" __global__ void reference(const __nv_bfloat16 *x, const __nv_bfloat16 *w, double *y, int r,
				     int h, float eps)
{
	for (int row = blockIdx.x * blockDim.x + threadIdx.x; row < r; row += gridDim.x * blockDim.x) {
		const __nv_bfloat16 *in = x + (long long)row * h;
		double s = 0.0;
		for (int i = 0; i < h; i++) {
			double v = (double)__bfloat162float(in[i]);
			s += v * v;
		}
		double scale = 1.0 / sqrt(s / (double)h + (double)eps);
		for (int i = 0; i < h; i++)
			y[(long long)row * h + i] = (double)__bfloat162float(in[i]) * scale *
						    (double)__bfloat162float(w[i]);
	}
}
