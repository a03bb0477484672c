/* v = v / 2 + x settles at 2 x long before its 1200 steps are over; DOSE per cent more of them change nothing. */
extern "C" __global__ void settle(const float *x, float *y, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i >= n)
		return;
	float v = 0.0f, a = x[i];
#pragma unroll 4
	for (int k = 0; k < 12 * (100 + DOSE); k++)
		v = fmaf(v, 0.5f, a);
	y[i] = v;
}
