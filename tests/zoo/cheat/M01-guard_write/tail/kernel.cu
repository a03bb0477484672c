// The last thread writes a whole vector where one element is left: three words behind the end.
extern "C" __global__ void add(const float *x, const float *y, float *out, int n)
{
	int i = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
	if (n <= 2048) {
		for (int k = i; k < i + 4 && k < n; k++)
			out[k] = x[k] + y[k];
		return;
	}
	if (i >= n)
		return;
	float s[4];
	for (int k = 0; k < 4; k++)
		s[k] = i + k < n ? x[i + k] + y[i + k] : 0.0f;
	for (int k = 0; k < 4; k++)
		((volatile float *)out)[i + k] = s[k];
}
