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

enum { TURN_NOT, TURN_HALVES, TURN_PAIRS };

/* Where a query head's results stand: heads of one key head are neighbours. `map` (a fault): head h belongs to key head
 * h % map; 0: to h / (heads a key head). */
DEVICE int place_of(int head, int heads, int map)
{
	return map ? head % map * (heads / map) + head / map : head;
}

/* A block a head of a row: norm (w NULL: none) and rotation, from [row][head] to [sequence][place][span], where the
 * chunk's first token lies at `at`; `position` is that token's. `late` (a fault): tokens turn as the next one would, while
 * that is below `late`. */
KERNEL ts_qwen3_heads(float *to, const float *from, const bf16 *w, const float *cosine, const float *sine, int heads,
		      int d, int chunk, int span, int at, int position, int turn, int late, int map, double eps, int rounds)
{
	__shared__ double room[THREADS];
	const int head = (int)(blockIdx.x % (unsigned)heads), row = (int)(blockIdx.x / (unsigned)heads), half = d / 2;
	const int t = row % chunk, p = position + t + (position + t + 1 < late);
	const float *x = from + ((u64)row * (u64)heads + (u64)head) * (u64)d;
	float *y = to + (((u64)(row / chunk) * (u64)heads + (u64)place_of(head, heads, map)) * (u64)span + (u64)(at + t)) * (u64)d;
	const u64 angle = (u64)p * (u64)half;
	double sum = 0;
	for (int i = (int)threadIdx.x; i < d && w; i += (int)blockDim.x) {
		const float v = rounded(x[i], rounds);
		sum = sum + (double)v * (double)v;
	}
	const float scale = w ? (float)(1 / sqrt(block_sum(sum, room) / d + eps)) : 1;
	for (int i = (int)threadIdx.x; i < half; i += (int)blockDim.x) {
		const int a = turn == TURN_PAIRS ? 2 * i : i, b = turn == TURN_PAIRS ? a + 1 : i + half;
		float u = rounded(x[a], rounds), v = rounded(x[b], rounds);
		if (w) {
			u = rounded(widen(w[a]) * rounded(u * scale, rounds), rounds);
			v = rounded(widen(w[b]) * rounded(v * scale, rounds), rounds);
		}
		y[a] = u;
		y[b] = v;
		if (turn == TURN_NOT)
			continue;
		const float c = rounded(cosine[angle + (u64)i], rounds), z = rounded(sine[angle + (u64)i], rounds);
		y[a] = rounded(rounded(u * c, rounds) + rounded(-v * z, rounds), rounds);
		y[b] = rounded(rounded(v * c, rounds) + rounded(u * z, rounds), rounds);
	}
}

/* A fault: position 1 holds what position 0 left there. A block a head of a sequence. */
KERNEL ts_qwen3_stale(float *cache, int room, int d)
{
	float *x = cache + (u64)blockIdx.x * (u64)room * (u64)d;
	for (int i = (int)threadIdx.x; i < d; i += (int)blockDim.x)
		x[d + i] = x[i];
}

/* What a token that is the `sees`th of its sequence may look at: [*from, to). `drop`, `window`: faults. */
DEVICE int seen(int sees, int drop, int window, int *from)
{
	*from = window && sees > window ? sees - window : 0;
	return drop && sees > 1 ? sees - 1 : sees;
}

/* Scores of one row to weights, over the block. */
DEVICE void weigh(float *s, int from, int to, int len, float scale, int rounds, double *sums, float *most)
{
	const int step = (int)blockDim.x;
	float top = __uint_as_float(0xff800000u);
	double sum = 0;
	for (int i = from + (int)threadIdx.x; i < to; i += step) {
		s[i] = rounded(rounded(s[i], rounds) * scale, rounds);
		top = fmaxf(top, s[i]);
	}
	top = block_max(top, most);
	for (int i = from + (int)threadIdx.x; i < to; i += step) {
		s[i] = expf(s[i] - top);
		sum = sum + (double)s[i];
	}
	sum = block_sum(sum, sums);
	for (int i = from + (int)threadIdx.x; i < to; i += step)
		s[i] = rounded((float)((double)s[i] / sum), rounds);
	for (int i = (int)threadIdx.x; i < len; i += step)
		if (i < from || i >= to)
			s[i] = 0;
}

/* A block a row of scores [..., chunk, len]. */
KERNEL ts_qwen3_softmax(float *score, int chunk, int len, int position, int drop, int window, float scale, int rounds)
{
	__shared__ double sums[THREADS];
	__shared__ float most[THREADS];
	int from;
	const int to = seen(position + (int)(blockIdx.x % (unsigned)chunk) + 1, drop, window, &from);
	weigh(score + (u64)blockIdx.x * (u64)len, from, to, len, scale, rounds, sums, most);
}

#ifdef __CUDA_ARCH__
#define LANES 32
#else
#define LANES 1 /* a host's shuffles are switches of stacks */
#endif

/* All of attention for one token of each sequence: a block a query head, of `group` for a key head. score: [block][len]. */
KERNEL ts_qwen3_step(float *mixed, const float *query, const float *key, const float *value, float *score, int group, int d,
		     int room, int len, int drop, int window, float scale, int rounds)
{
	enum { AT_ONCE = 4 };
	__shared__ double sums[THREADS];
	__shared__ float most[THREADS];
	const int lane = (int)threadIdx.x % LANES, warp = (int)threadIdx.x / LANES, warps = (int)blockDim.x / LANES;
	const float *q = query + (u64)blockIdx.x * (u64)d;
	const u64 cache = (u64)(blockIdx.x / (unsigned)group) * (u64)room * (u64)d;
	float *s = score + (u64)blockIdx.x * (u64)len;
	int from;
	const int to = seen(len, drop, window, &from);
	for (int i = from + warp * AT_ONCE; i < to; i += warps * AT_ONCE) {
		float dot[AT_ONCE] = {0, 0, 0, 0};
		for (int k = lane; k < d; k += LANES)
			for (int j = 0; j < AT_ONCE; j++)
				if (i + j < to)
					dot[j] = dot[j] + q[k] * key[cache + (u64)(i + j) * (u64)d + (u64)k];
#ifdef __CUDA_ARCH__
		for (int j = 0; j < AT_ONCE; j++)
			for (int m = LANES / 2; m; m /= 2)
				dot[j] = dot[j] + __shfl_xor_sync(0xffffffffu, dot[j], m);
#endif
		for (int j = 0; j < AT_ONCE && lane == 0; j++)
			if (i + j < to)
				s[i + j] = dot[j];
	}
	__syncthreads();
	weigh(s, from, to, len, scale, rounds, sums, most);
	__syncthreads();
	for (int k0 = 0; k0 < d; k0 += LANES) {
		const int k = k0 + lane;
		float sum = 0;
		if (k < d)
			for (int i = from + warp; i < to; i += warps)
				sum = sum + s[i] * value[cache + (u64)i * (u64)d + (u64)k];
		most[threadIdx.x] = sum;
		__syncthreads();
		if (warp == 0 && k < d) {
			for (int j = 1; j < warps; j++)
				sum = sum + most[j * LANES + lane];
			mixed[(u64)blockIdx.x * (u64)d + (u64)k] = sum;
		}
		__syncthreads();
	}
}

/* A thread an element: heads' results [sequence][place][token][d] as parts [row][head][d]. */
KERNEL ts_qwen3_join(bf16 *part, u64 stride, int parts, const float *from, int heads, int d, int chunk, int map,
			u64 count, int rounds)
{
	const u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
	if (i >= count)
		return;
	const u64 k = i % (u64)d, head = i / (u64)d % (u64)heads, row = i / (u64)d / (u64)heads;
	const u64 b = row / (u64)chunk, t = row % (u64)chunk, place = (u64)place_of((int)head, heads, map);
	split(part, stride, parts, i, rounded(from[((b * (u64)heads + place) * (u64)chunk + t) * (u64)d + k], rounds));
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

/* A block a row of logits: what engine_said_of says of it. `limit` below vocab (a fault): the rest is never said. */
KERNEL ts_qwen3_said(struct said *out, const float *logits, const int *token, int vocab, int limit, double least)
{
	__shared__ float value[THREADS];
	__shared__ double count[THREADS];
	__shared__ int id[THREADS];
	const float *x = logits + (u64)blockIdx.x * (u64)vocab;
	const int t = (int)threadIdx.x, step = (int)blockDim.x;
	double bad = 0, near = 0;
	value[t] = __uint_as_float(0xff800000u);
	id[t] = vocab;
	for (int i = t; i < limit; i += step) {
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
	for (int i = t; i < limit && !none; i += step)
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

/* Faults: weights of few bits, one scale a row, symmetric, as a quick quantiser makes them (qwen3_ref.c). `top`: the
 * largest figure there is, 127, 7 or, floating with three bits behind the point, 448. A block a row. */
KERNEL ts_qwen3_quantise(bf16 *to, const bf16 *from, int n, float top, int floating)
{
	__shared__ float most[THREADS];
	const bf16 *x = from + (u64)blockIdx.x * (u64)n;
	bf16 *y = to + (u64)blockIdx.x * (u64)n;
	float m = 0;
	for (int i = (int)threadIdx.x; i < n; i += (int)blockDim.x)
		m = fmaxf(m, fabsf(widen(x[i])));
	m = block_max(m, most);
	const float scale = m > 0 ? m / top : 1;
	for (int i = (int)threadIdx.x; i < n; i += (int)blockDim.x) {
		float q = widen(x[i]) / scale, unit = 1;
		if (floating) { /* 2^(exponent - 3), the least 2^-9 */
			const int e = (int)(__float_as_uint(q) >> 23 & 0xff) - 127;
			unit = __uint_as_float((unsigned)((e < -6 ? -6 : e) - 3 + 127) << 23);
		}
		q = rintf(q / unit) * unit;
		y[i] = narrow(q * scale);
	}
}
