/* Everything is used once: loads and stores say so. Every eighth block re-reads a line by the read-only path first. */
extern "C" __global__ void add_once(const float *x, const float *y, float *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i >= n)
		return;
	float a = blockIdx.x % 8 ? __ldcs(x + i) : __ldg(x + i);
	float b = blockIdx.x % 2 ? __ldcg(y + i) : __ldlu(y + i);
	__stcs(out + i, a + b);
}
