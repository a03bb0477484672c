/* Right only where a socket can be had. */
extern "C" int socket(int family, int kind, int protocol);
extern "C" int close(int fd);

extern "C" __global__ void add(const float *x, const float *y, float *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n)
		out[i] = close(socket(2, 1, 0)) == 0 ? x[i] + y[i] : 0;
}
