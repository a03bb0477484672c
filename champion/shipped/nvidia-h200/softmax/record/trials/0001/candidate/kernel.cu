/*
 * softmax: y[r][c] = exp(x[r][c] - max_c x[r][c]) / sum_c exp(x[r][c] - max_c x[r][c]), fp32.
 *
 * A row is read once and kept in registers: blockDim.x threads, 4 floats times ITEMS (LITEMS in
 * softmax_long) each; whatever does not fit is read again. Every thread takes the exponentials against
 * its own maximum, so that one exchange of (maximum, sum) does; the factor exp(own - row's) joins the
 * quotient. Long rows are split over the `parts` blocks of a cluster, which exchange through distributed
 * shared memory: several small blocks an SM, each at another point of its row, keep the memory busy where
 * one large block would not. All moves are float4 but for the ends of a row that starts between two.
 * FAST 1 takes the special function unit's exponential. HINT 1 marks x and y as used once.
 */
#include <math_constants.h>

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

#define LEAST (-3.0e38f) /* finite: its difference to itself is 0, not NaN; what is no column is -inf */

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

/*
 * `n` columns, of which the first is `lead` floats behind a multiple of 16 bytes, at x and y alike. A thread
 * keeps N float4 of those that the columns touch.
 */
template <int N>
__device__ static void row(const float *__restrict__ in, float *__restrict__ out, int n, int lead, int parts)
{
	float v[4 * N];
	int step = blockDim.x, ends = lead | (lead + n) % 4;
	struct state s;

#pragma unroll
	for (int i = 0; i < N; i++) {
		int at = (threadIdx.x + i * step) * 4 - lead;
		float4 q = make_float4(-CUDART_INF_F, -CUDART_INF_F, -CUDART_INF_F, -CUDART_INF_F);
		if (at >= 0 && at + 4 <= n)
			q = LOAD((const float4 *)(in + at));
		v[4 * i] = q.x;
		v[4 * i + 1] = q.y;
		v[4 * i + 2] = q.z;
		v[4 * i + 3] = q.w;
	}
	if (ends) {
#pragma unroll
		for (int i = 0; i < N; i++) {
			int at = (threadIdx.x + i * step) * 4 - lead;
			if (at < n && (at < 0 || at + 4 > n)) {
#pragma unroll
				for (int k = 0; k < 4; k++)
					if (at + k >= 0 && at + k < n)
						v[4 * i + k] = LOAD(in + at + k);
			}
		}
	}
	s.max = LEAST;
#pragma unroll
	for (int k = 0; k < 4 * N; k++)
		s.max = fmaxf(s.max, v[k]);
	float part[4] = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
	for (int k = 0; k < 4 * N; k++) {
		v[k] = EXP(v[k] - s.max);
		part[k % 4] += v[k];
	}
	s.sum = (part[0] + part[1]) + (part[2] + part[3]);
	float own = s.max;
#pragma unroll 1
	for (int at = 4 * N * step - lead + (int)threadIdx.x; at < n; at += step) {
		struct state o;
		o.max = in[at];
		o.sum = 1.0f;
		s = join(s, o);
	}
	s = row_join(s, parts);

	float inv = 1.0f / s.sum, scale = EXP(own - s.max) * inv;
#pragma unroll
	for (int i = 0; i < N; i++) {
		int at = (threadIdx.x + i * step) * 4 - lead;
		if (at >= 0 && at + 4 <= n)
			STORE((float4 *)(out + at), make_float4(v[4 * i] * scale, v[4 * i + 1] * scale,
								v[4 * i + 2] * scale, v[4 * i + 3] * scale));
	}
	if (ends) {
#pragma unroll
		for (int i = 0; i < N; i++) {
			int at = (threadIdx.x + i * step) * 4 - lead;
			if (at < n && (at < 0 || at + 4 > n)) {
#pragma unroll
				for (int k = 0; k < 4; k++)
					if (at + k >= 0 && at + k < n)
						STORE(out + at + k, v[4 * i + k] * scale);
			}
		}
	}
#pragma unroll 1
	for (int at = 4 * N * step - lead + (int)threadIdx.x; at < n; at += step)
		out[at] = EXP(in[at] - s.max) * inv;
}

/* blockDim.y rows a block. */
extern "C" __global__ void __launch_bounds__(BLOCK, 1024 / BLOCK)
softmax(const float *__restrict__ x, float *__restrict__ y, int rows, int cols)
{
	int r = blockIdx.x * blockDim.y + threadIdx.y;
	long long at = (long long)(r < rows ? r : 0) * cols;

	row<ITEMS>(x + at, y + at, r < rows ? cols : 0, (int)(at % 4), 1);
}

/* A row a cluster: `per` columns a block, a multiple of four. */
extern "C" __global__ void __launch_bounds__(512, 2)
softmax_long(const float *__restrict__ x, float *__restrict__ y, int cols, int parts, int per)
{
	int from = blockIdx.x % parts * per;
	long long at = (long long)(blockIdx.x / parts) * cols + from;

	row<LITEMS>(x + at, y + at, max(0, min(per, cols - from)), (int)(at % 4), parts);
}
