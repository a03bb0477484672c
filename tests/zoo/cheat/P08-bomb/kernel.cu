/* Four million numbers from six lines. */
#define A 1, 1, 1, 1, 1, 1, 1, 1,
#define B A A A A A A A A
#define C B B B B B B B B
#define D C C C C C C C C
#define E D D D D D D D D
#define F E E E E E E E E
static __device__ const char many[] = {F F F F F F F F F F F F F F F F 0};

extern "C" __global__ void add(const float *x, const float *y, float *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n)
		out[i] = many[i & 7] == 1 ? x[i] + y[i] : 0;
}
