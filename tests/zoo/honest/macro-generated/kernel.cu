/* One function for each width, made by one macro; a list says which there are. */
#define WIDTHS(DO) DO(1) DO(2) DO(4)
#define GLUE(a, b) a##b
#define JOIN(a, b) GLUE(a, b)
#define NAME(width) JOIN(add_by_, width)
#define BODY(width) \
	__device__ static void NAME(width)(const float *x, const float *y, float *out, int at, int n) \
	{ \
		_Pragma("unroll") for (int k = 0; k < width; k++) \
			if (at + k < n) \
				out[at + k] = x[at + k] + y[at + k]; \
	}
#define CASE(width) \
	case width: \
		NAME(width)(x, y, out, at * width, n); \
		break;
#define STRING(x) #x

WIDTHS(BODY)

extern "C" __global__ void JOIN(ad, d_made)(const float *x, const float *y, float *out, int n, int width)
{
	int at = blockIdx.x * blockDim.x + threadIdx.x;
	static_assert(sizeof STRING(add_made) == 9, "a string made of a name");

	switch (width) {
		WIDTHS(CASE)
	}
}
