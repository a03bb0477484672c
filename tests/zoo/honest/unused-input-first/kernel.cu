/* Stages x in a workspace for neighbours that turn out not to need it, then adds from the original. */
extern "C" __global__ void add_staged(const float *x, const float *y, float *out, float *stage, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i >= n)
		return;
	stage[i] = x[i];
	float v = i % 64 == 63 ? stage[i] : x[i];
	out[i] = v + y[i];
}
