/*
 * softmax: y[r][c] = exp(x[r][c] - max_c x[r][c]) / sum_c exp(x[r][c] - max_c x[r][c]), fp32.
 *
 * A row is read once and kept in registers: blockDim.x threads, 4 * ITEMS floats each; whatever
 * does not fit is read again. Every thread takes the exponentials against its own maximum, so that
 * one exchange of (maximum, sum) does; the factor exp(own - row's) joins the quotient. Long rows are
 * split over the `parts` blocks of a cluster, which exchange through distributed shared memory.
 * Columns that are a multiple of four move as float4. FAST 1 takes the special function unit's
 * exponential. HINT 1 marks x and y as used once.
 */
#if HINT == 0
#define LOAD(p) (*(p))
#define STORE(p, v) (*(p) = (v))
#else
#define LOAD(p) __ldcs(p)
#define STORE(p, v) __stcs(p, v)
#endif

#if FAST
#define EXP(v) __expf(v)
#else
#define EXP(v) expf(v)
#endif

#define LEAST (-3.0e38f) /* finite: its difference to itself is 0, not NaN */

struct state {
	float max, sum;
};

/* ptx: begin */
/* All threads of the cluster have come here, and see what the others wrote before. */
__device__ static void cluster_sync(void)
{
	asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}

/* The float at *mine of block `rank` of this cluster. */
__device__ static float cluster_read(const float *mine, int rank)
{
	unsigned at = (unsigned)__cvta_generic_to_shared(mine);
	float v;
	asm volatile("{\n.reg .b32 far;\nmapa.shared::cluster.u32 far, %1, %2;\n"
		"ld.shared::cluster.f32 %0, [far];\n}" : "=f"(v) : "r"(at), "r"(rank) : "memory");
	return v;
}
/* ptx: end */

__device__ static struct state join(struct state a, struct state b)
{
	struct state r;
	r.max = fmaxf(a.max, b.max);
	r.sum = a.sum * EXP(a.max - r.max) + b.sum * EXP(b.max - r.max);
	return r;
}

__device__ static struct state warp_join(struct state s)
{
#pragma unroll
	for (int d = 16; d > 0; d /= 2) {
		struct state o;
		o.max = __shfl_xor_sync(0xffffffffu, s.max, d);
		o.sum = __shfl_xor_sync(0xffffffffu, s.sum, d);
		s = join(s, o);
	}
	return s;
}

/* Over the blockDim.x threads of a row, and the blocks of its cluster. */
__device__ static struct state row_join(struct state s, int parts)
{
	__shared__ struct state part[32];
	int warps = blockDim.x / 32, lane = threadIdx.x % 32;

	s = warp_join(s);
	if (warps > 1) {
		if (lane == 0)
			part[threadIdx.y * warps + threadIdx.x / 32] = s;
		__syncthreads();
		s.max = LEAST;
		s.sum = 0.0f;
		if (lane < warps)
			s = part[threadIdx.y * warps + lane];
		s = warp_join(s);
	}
	if (parts > 1) { /* blocks of one row each: the plan sees to it */
		__shared__ struct state mine;
		if (threadIdx.x == 0)
			mine = s;
		cluster_sync();
		s.max = LEAST;
		s.sum = 0.0f;
		if (lane < parts) {
			s.max = cluster_read(&mine.max, lane);
			s.sum = cluster_read(&mine.sum, lane);
		}
		s = warp_join(s);
		cluster_sync(); /* nobody leaves while others still read its state */
	}
	return s;
}

/* One thread's columns: 4 * ITEMS in registers. WIDE: float4, `n` counts float4. */
template <bool WIDE>
__device__ static void row(const float *__restrict__ in, float *__restrict__ out, int n, int parts)
{
	enum { PER = WIDE ? ITEMS : 4 * ITEMS, W = WIDE ? 4 : 1 };
	float v[4 * ITEMS];
	int step = blockDim.x;
	struct state s;

#pragma unroll
	for (int i = 0; i < PER; i++) {
		int at = threadIdx.x + i * step;
		if (WIDE) {
			float4 q = make_float4(LEAST, LEAST, LEAST, LEAST);
			if (at < n)
				q = LOAD((const float4 *)in + at);
			v[i * W] = q.x;
			v[(i * W + 1) % (4 * ITEMS)] = q.y;
			v[(i * W + 2) % (4 * ITEMS)] = q.z;
			v[(i * W + 3) % (4 * ITEMS)] = q.w;
		} else {
			v[i] = LEAST;
			if (at < n)
				v[i] = LOAD(in + at);
		}
	}
	s.max = v[0];
#pragma unroll
	for (int k = 1; k < 4 * ITEMS; k++)
		s.max = fmaxf(s.max, v[k]);
	float part[4] = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
	for (int k = 0; k < 4 * ITEMS; k++) {
		int at = threadIdx.x + k / W * step;
		v[k] = EXP(v[k] - s.max);
		part[k % 4] += at < n ? v[k] : 0.0f;
	}
	s.sum = (part[0] + part[1]) + (part[2] + part[3]);
	float own = s.max;
#pragma unroll 1
	for (int at = (threadIdx.x + PER * step) * W; at < n * W; at += step * W)
		for (int k = 0; k < W; k++) {
			struct state o;
			o.max = in[at + k];
			o.sum = 1.0f;
			s = join(s, o);
		}
	s = row_join(s, parts);

	float inv = 1.0f / s.sum, scale = EXP(own - s.max) * inv;
#pragma unroll
	for (int i = 0; i < PER; i++) {
		int at = threadIdx.x + i * step;
		if (at >= n)
			continue;
		if (WIDE)
			STORE((float4 *)out + at,
			      make_float4(v[i * W] * scale, v[(i * W + 1) % (4 * ITEMS)] * scale,
					  v[(i * W + 2) % (4 * ITEMS)] * scale,
					  v[(i * W + 3) % (4 * ITEMS)] * scale));
		else
			STORE(out + at, v[i] * scale);
	}
#pragma unroll 1
	for (int at = (threadIdx.x + PER * step) * W; at < n * W; at += step * W)
		for (int k = 0; k < W; k++)
			out[at + k] = EXP(in[at + k] - s.max) * inv;
}

/* `per` columns a block, a multiple of four when there are several. */
extern "C" __global__ void __launch_bounds__(1024)
softmax(const float *__restrict__ x, float *__restrict__ y, int rows, int cols, int parts, int per)
{
	int r = blockIdx.x / parts * blockDim.y + threadIdx.y, from = blockIdx.x % parts * per;
	int n = r < rows ? max(0, min(per, cols - from)) : 0;
	long long at = (long long)(r < rows ? r : 0) * cols + from;

	if (cols % 4 == 0)
		row<true>(x + at, y + at, n / 4, parts);
	else
		row<false>(x + at, y + at, n, parts);
}
