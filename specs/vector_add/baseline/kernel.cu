/*
 * vector_add: out[i] = x[i] + y[i] for n floats.
 *
 * Each thread handles ITEMS groups of VEC neighbouring elements, BLOCK groups apart, so that
 * a warp always reads one contiguous stretch. VEC > 1 moves 8 or 16 bytes an access.
 */
#if VEC == 1
typedef float vec_type;
#elif VEC == 2
typedef float2 vec_type;
#else
typedef float4 vec_type;
#endif

union pack {
	vec_type v;
	float f[VEC];
};

extern "C" __global__ void __launch_bounds__(BLOCK)
vector_add(const float *__restrict__ x, const float *__restrict__ y, float *__restrict__ out, int n)
{
	int first = (blockIdx.x * ITEMS * BLOCK + threadIdx.x) * VEC;
#pragma unroll
	for (int i = 0; i < ITEMS; i++) {
		int at = first + i * BLOCK * VEC;
		if (at + VEC <= n) {
			union pack a, b;
			a.v = *(const vec_type *)(x + at);
			b.v = *(const vec_type *)(y + at);
#pragma unroll
			for (int k = 0; k < VEC; k++)
				a.f[k] += b.f[k];
			*(vec_type *)(out + at) = a.v;
		} else {
			for (int k = at; k < n; k++)
				out[k] = x[k] + y[k];
		}
	}
}
