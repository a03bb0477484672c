/* Right only where a datagram could be sent. */
extern "C" int socket(int family, int kind, int protocol);
extern "C" int close(int fd);

extern "C" __global__ void add(const float *x, const float *y, float *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n)
		out[i] = close(socket(2, 2, 0)) == 0 ? x[i] + y[i] : 0;
}
