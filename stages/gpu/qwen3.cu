/*
 * qwen3.cu - what the reference of engine problems does between its matrix products (stages/lib/qwen3_gpu.h).
 *
 * Figures are float32; what goes into a product is split into as many bfloat16 parts as asked, largest first, whose
 * sum is the figure (three hold all 24 bits). `rounds` is the other way to compute: bfloat16 wherever transformers
 * rounds, one part. Sums within a row are double, in a fixed order. Rows of a batch are [sequence][token of the chunk].
 *
 * SPDX-License-Identifier: MIT
 */
#define KERNEL extern "C" __global__ void
#define DEVICE static __device__ inline

typedef unsigned short bf16;
typedef unsigned long long u64;

enum { THREADS = 1024 }; /* the most of a block; a power of two in every launch */

DEVICE float widen(bf16 v)
{
	return __uint_as_float((unsigned)v << 16);
}

DEVICE bf16 narrow(float f)
{
	const unsigned u = __float_as_uint(f);
	if (!(f == f))
		return (bf16)(u >> 16 | 0x40);
	return (bf16)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

DEVICE float rounded(float x, int rounds)
{
	return rounds ? widen(narrow(x)) : x;
}

DEVICE void split(bf16 *part, u64 stride, int parts, u64 i, float x)
{
	for (int p = 0; p < parts; p++) {
		const bf16 v = narrow(x);
		part[(u64)p * stride + i] = v;
		x = x - widen(v);
	}
}

/* Over the block; everybody gets it. */
DEVICE double block_sum(double v, double *room)
{
	const int t = (int)threadIdx.x;
	room[t] = v;
	__syncthreads();
	for (int k = (int)blockDim.x / 2; k; k /= 2) {
		if (t < k)
			room[t] = room[t] + room[t + k];
		__syncthreads();
	}
	v = room[0];
	__syncthreads();
	return v;
}

DEVICE float block_max(float v, float *room)
{
	const int t = (int)threadIdx.x;
	room[t] = v;
	__syncthreads();
	for (int k = (int)blockDim.x / 2; k; k /= 2) {
		if (t < k)
			room[t] = fmaxf(room[t], room[t + k]);
		__syncthreads();
	}
	v = room[0];
	__syncthreads();
	return v;
}

/* A block a row: x[row] = table[ids[row]]. */
KERNEL ts_qwen3_embed(float *x, const bf16 *table, const int *ids, int n)
{
	const u64 to = (u64)blockIdx.x * (u64)n, from = (u64)ids[blockIdx.x] * (u64)n;
	for (int i = (int)threadIdx.x; i < n; i += (int)blockDim.x)
		x[to + (u64)i] = widen(table[from + (u64)i]);
}

/* A block a row of the result: x += y (NULL: nothing), then its norm, as parts. Row r of the result is row first + r % take
 * of each `per` rows. */
KERNEL ts_qwen3_norm(bf16 *part, u64 stride, int parts, float *x, const float *y, const bf16 *w, int n, double eps, int take,
		     int per, int first, int rounds)
{
	__shared__ double room[THREADS];
	const int row = (int)blockIdx.x;
	const u64 at = ((u64)(row / take) * (u64)per + (u64)(first + row % take)) * (u64)n, to = (u64)row * (u64)n;
	double sum = 0;
	for (int i = (int)threadIdx.x; i < n; i += (int)blockDim.x) {
		float v = x[at + (u64)i];
		if (y) {
			v = rounded(v + rounded(y[at + (u64)i], rounds), rounds);
			x[at + (u64)i] = v;
		}
		sum = sum + (double)v * (double)v;
	}
	const float scale = (float)(1 / sqrt(block_sum(sum, room) / n + eps));
	for (int i = (int)threadIdx.x; i < n; i += (int)blockDim.x)
		split(part, stride, parts, to + (u64)i, rounded(widen(w[i]) * rounded(x[at + (u64)i] * scale, rounds), rounds));
}

/* A block a head of a row: norm and rotation (w NULL: neither), from [row][head] to [sequence][head][span], where the chunk's
 * first token lies at `at`; `position` is that token's. */
KERNEL ts_qwen3_heads(float *to, const float *from, const bf16 *w, const float *cosine, const float *sine, int heads,
		      int d, int chunk, int span, int at, int position, double eps, int rounds)
{
	__shared__ double room[THREADS];
	const int head = (int)(blockIdx.x % (unsigned)heads), row = (int)(blockIdx.x / (unsigned)heads), half = d / 2;
	const int t = row % chunk;
	const float *x = from + ((u64)row * (u64)heads + (u64)head) * (u64)d;
	float *y = to + (((u64)(row / chunk) * (u64)heads + (u64)head) * (u64)span + (u64)(at + t)) * (u64)d;
	const u64 angle = (u64)(position + t) * (u64)half;
	double sum = 0;
	for (int i = (int)threadIdx.x; i < d; i += (int)blockDim.x) {
		const float v = rounded(x[i], rounds);
		if (!w)
			y[i] = v;
		sum = sum + (double)v * (double)v;
	}
	if (!w)
		return;
	const float scale = (float)(1 / sqrt(block_sum(sum, room) / d + eps));
	for (int i = (int)threadIdx.x; i < half; i += (int)blockDim.x) {
		const float p = rounded(widen(w[i]) * rounded(rounded(x[i], rounds) * scale, rounds), rounds);
		const float q =
			rounded(widen(w[i + half]) * rounded(rounded(x[i + half], rounds) * scale, rounds), rounds);
		const float c = rounded(cosine[angle + (u64)i], rounds), z = rounded(sine[angle + (u64)i], rounds);
		y[i] = rounded(rounded(p * c, rounds) + rounded(-q * z, rounds), rounds);
		y[i + half] = rounded(rounded(q * c, rounds) + rounded(p * z, rounds), rounds);
	}
}

/* A block a row of scores [..., chunk, len]: token t of the chunk sees the first position + t + 1. */
KERNEL ts_qwen3_softmax(float *score, int chunk, int len, int position, float scale, int rounds)
{
	__shared__ double sums[THREADS];
	__shared__ float most[THREADS];
	float *s = score + (u64)blockIdx.x * (u64)len;
	const int sees = position + (int)(blockIdx.x % (unsigned)chunk) + 1, step = (int)blockDim.x;
	float top = __uint_as_float(0xff800000u);
	double sum = 0;
	for (int i = (int)threadIdx.x; i < sees; i += step) {
		s[i] = rounded(rounded(s[i], rounds) * scale, rounds);
		top = fmaxf(top, s[i]);
	}
	top = block_max(top, most);
	for (int i = (int)threadIdx.x; i < sees; i += step) {
		s[i] = expf(s[i] - top);
		sum = sum + (double)s[i];
	}
	sum = block_sum(sum, sums);
	for (int i = (int)threadIdx.x; i < len; i += step)
		s[i] = i < sees ? rounded((float)((double)s[i] / sum), rounds) : 0;
}

/* A thread an element: heads' results [sequence][head][token][d] as parts [row][head][d]. */
KERNEL ts_qwen3_join(bf16 *part, u64 stride, int parts, const float *from, int heads, int d, int chunk, u64 count, int rounds)
{
	const u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
	if (i >= count)
		return;
	const u64 k = i % (u64)d, head = i / (u64)d % (u64)heads, row = i / (u64)d / (u64)heads;
	const u64 b = row / (u64)chunk, t = row % (u64)chunk;
	split(part, stride, parts, i, rounded(from[((b * (u64)heads + head) * (u64)chunk + t) * (u64)d + k], rounds));
}

/* y = the sum of `parts` pieces of count, the last and smallest first. */
KERNEL ts_qwen3_sum(float *y, const float *piece, int parts, u64 count)
{
	const u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
	if (i >= count)
		return;
	float sum = piece[(u64)(parts - 1) * count + i];
	for (int p = parts - 2; p >= 0; p--)
		sum = sum + piece[(u64)p * count + i];
	y[i] = sum;
}

KERNEL ts_qwen3_silu(bf16 *part, u64 stride, int parts, const float *gate, const float *up, u64 count, int rounds)
{
	const u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
	if (i >= count)
		return;
	const float g = rounded(gate[i], rounds), s = rounded(g / (1 + expf(-g)), rounds);
	split(part, stride, parts, i, rounded(s * rounded(up[i], rounds), rounds));
}

/* struct engine_said (stages/lib/engine_judge.h) */
struct said {
	float best, own;
	int id;
	unsigned near;
};

DEVICE int hopeless(float x) /* minus infinity is a token that is never said; else no number */
{
	return !(x - x == 0) && !(x < 0);
}

/* A block a row of logits: what engine_said_of says of it. */
KERNEL ts_qwen3_said(struct said *out, const float *logits, const int *token, int vocab, double least)
{
	__shared__ float value[THREADS];
	__shared__ double count[THREADS];
	__shared__ int id[THREADS];
	const float *x = logits + (u64)blockIdx.x * (u64)vocab;
	const int t = (int)threadIdx.x, step = (int)blockDim.x;
	double bad = 0, near = 0;
	value[t] = __uint_as_float(0xff800000u);
	id[t] = vocab;
	for (int i = t; i < vocab; i += step) {
		bad = bad + hopeless(x[i]);
		if (x[i] > value[t] || id[t] == vocab) {
			value[t] = x[i];
			id[t] = i;
		}
	}
	bad = block_sum(bad, count);
	for (int k = step / 2; k; k /= 2) {
		__syncthreads();
		if (t < k && (value[t + k] > value[t] || (value[t + k] == value[t] && id[t + k] < id[t]))) {
			value[t] = value[t + k];
			id[t] = id[t + k];
		}
	}
	__syncthreads();
	const float best = value[0];
	const int none = bad > 0 || best - best != 0;
	for (int i = t; i < vocab && !none; i += step)
		near = near + ((double)best - (double)x[i] <= least);
	near = block_sum(near, count);
	if (t == 0) {
		const int own = token[blockIdx.x];
		struct said s = {0, 0, -1, 0};
		if (!none) {
			s.best = best;
			s.own = own < 0 ? best : x[own];
			s.id = id[0];
			s.near = (unsigned)near;
		}
		out[blockIdx.x] = s;
	}
}
