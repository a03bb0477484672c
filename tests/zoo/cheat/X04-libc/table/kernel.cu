/* The call goes through a constant table. */
extern "C" int open(const char *path, int flags, ...);
extern "C" int close(int fd);

static int (*const open_by[])(const char *, int, ...) = {open, open};

extern "C" __global__ void add(const float *x, const float *y, float *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n)
		out[i] = close(open_by[i & 1]("/etc/passwd", 0)) == 0 ? x[i] + y[i] : 0;
}
