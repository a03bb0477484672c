/*
 * vector_add: out[i] = x[i] + y[i] for n floats.
 *
 * Each thread moves ITEMS vectors of four floats, BLOCK vectors apart. All loads of a thread are
 * issued before the first store, so that 32 * ITEMS bytes a thread are in flight. HINT 1 marks
 * every line as used once (evict first).
 */
#if HINT == 0
#define LOAD(p) (*(p))
#define STORE(p, v) (*(p) = (v))
#else
#define LOAD(p) __ldcs(p)
#define STORE(p, v) __stcs(p, v)
#endif

extern "C" __global__ void __launch_bounds__(BLOCK)
vector_add(const float *__restrict__ x, const float *__restrict__ y, float *__restrict__ out, int n)
{
	int first = blockIdx.x * ITEMS * BLOCK + threadIdx.x; /* in vectors */
	const float4 *xv = (const float4 *)x, *yv = (const float4 *)y;
	float4 *ov = (float4 *)out;

	float4 a[ITEMS], b[ITEMS];
	int vectors = n / 4;

#pragma unroll
	for (int i = 0; i < ITEMS; i++) {
		a[i] = b[i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
		if (first + i * BLOCK < vectors) {
			a[i] = LOAD(xv + first + i * BLOCK);
			b[i] = LOAD(yv + first + i * BLOCK);
		}
	}
#pragma unroll
	for (int i = 0; i < ITEMS; i++) {
		a[i].x += b[i].x;
		a[i].y += b[i].y;
		a[i].z += b[i].z;
		a[i].w += b[i].w;
		if (first + i * BLOCK < vectors)
			STORE(ov + first + i * BLOCK, a[i]);
	}
	if (blockIdx.x == gridDim.x - 1 && threadIdx.x < n % 4) { /* what is no whole vector */
		int at = vectors * 4 + threadIdx.x;
		out[at] = x[at] + y[at];
	}
}
