/*
 * qwen3_ref.c - see qwen3_ref.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "qwen3_ref.h"

#include "buf.h"
#include "dtype.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Tokens go through a matrix in tiles of TILE, one lane each: a sum runs over the inputs in order in every
 * lane, so that a token's result does not depend on what else is in its tile. */
enum { TILE = 16, WINDOW = 64 };
typedef float lanes __attribute__((vector_size(TILE * sizeof(float))));

struct qwen3_seq {
	const struct qwen3 *m;
	enum qwen3_policy policy;
	enum qwen3_fault fault;
	int room, len;
	float *k, *v;          /* [layers][room][kv_heads x head_dim] */
	float *cosine, *sine;  /* [room][head_dim / 2] */
	uint16_t *row;         /* a row of weights after quantisation */
};

const char *qwen3_fault_name(enum qwen3_fault f)
{
	static const char *const NAME[QWEN3_FAULTS] = {
		"right", "rope_pairs", "no_rope", "no_qk_norm", "q_late", "drop_newest", "window", "gqa_map",
		"skip_layer", "stale_kv", "vocab", "int8", "int4", "fp8"};
	return f < QWEN3_FAULTS ? NAME[f] : "?";
}

static float rounded(const struct qwen3_seq *s, float x)
{
	return s->policy == QWEN3_BF16 ? dtype_from_bf16(dtype_to_bf16(x)) : x;
}

/* ---- matrices ---- */

static int quantised(const struct qwen3_seq *s)
{
	return s->fault == QWEN3_INT8 || s->fault == QWEN3_INT4 || s->fault == QWEN3_FP8;
}

/* One scale a row, symmetric: what a quick quantiser does. */
static const uint16_t *quantise(struct qwen3_seq *s, const uint16_t *w, int n)
{
	const float top = s->fault == QWEN3_INT8 ? 127 : s->fault == QWEN3_INT4 ? 7 : 448;
	float most = 0;
	for (int i = 0; i < n; i++)
		most = fmaxf(most, fabsf(dtype_from_bf16(w[i])));
	const float scale = most > 0 ? most / top : 1;
	for (int i = 0; i < n; i++) {
		float q = dtype_from_bf16(w[i]) / scale;
		q = s->fault == QWEN3_FP8 ? dtype_from_e4m3(dtype_to_e4m3(q)) : rintf(q);
		s->row[i] = dtype_to_bf16(q * scale);
	}
	return s->row;
}

/* y[t][out] = sum over in of x[t][in] w[out][in]. `raw`: left in float32 under every policy. */
static void matrix(struct qwen3_seq *s, float *y, const float *x, const uint16_t *w, int tokens, int out, int in, int raw)
{
	lanes *tile = aligned_alloc(sizeof(lanes), (size_t)in * sizeof(lanes));
	if (!tile)
		abort();
	for (int t = 0; t < tokens; t += TILE) {
		const int n = tokens - t < TILE ? tokens - t : TILE;
		memset(tile, 0, (size_t)in * sizeof(lanes));
		for (int j = 0; j < n; j++)
			for (int i = 0; i < in; i++)
				tile[i][j] = x[(size_t)(t + j) * (size_t)in + (size_t)i];
		for (int o = 0; o < out; o++) {
			const uint16_t *r = w + (size_t)o * (size_t)in;
			lanes sum = {0};
			if (quantised(s))
				r = quantise(s, r, in);
			for (int i = 0; i < in; i++)
				sum += dtype_from_bf16(r[i]) * tile[i];
			for (int j = 0; j < n; j++)
				y[(size_t)(t + j) * (size_t)out + (size_t)o] = raw ? sum[j] : rounded(s, sum[j]);
		}
	}
	free(tile);
}

/* ---- norm, rotation ---- */

static void norm(const struct qwen3_seq *s, float *y, const float *x, const uint16_t *w, int n)
{
	double sum = 0;
	for (int i = 0; i < n; i++)
		sum += (double)x[i] * x[i];
	const float scale = (float)(1 / sqrt(sum / n + s->m->c.eps));
	for (int i = 0; i < n; i++)
		y[i] = rounded(s, dtype_from_bf16(w[i]) * rounded(s, x[i] * scale));
}

static void rotate(const struct qwen3_seq *s, float *x, int position)
{
	const int half = s->m->c.head_dim / 2;
	const float *c = s->cosine + (size_t)position * (size_t)half, *z = s->sine + (size_t)position * (size_t)half;
	if (s->fault == QWEN3_NO_ROPE)
		return;
	for (int i = 0; i < half; i++) {
		float *a = x + i, *b = x + i + half;
		if (s->fault == QWEN3_ROPE_PAIRS) {
			a = x + 2 * i;
			b = a + 1;
		}
		const float p = *a, q = *b;
		*a = rounded(s, rounded(s, p * c[i]) + rounded(s, -q * z[i]));
		*b = rounded(s, rounded(s, q * c[i]) + rounded(s, p * z[i]));
	}
}

static void angles(struct qwen3_seq *s)
{
	const int half = s->m->c.head_dim / 2;
	for (int p = 0; p < s->room; p++)
		for (int i = 0; i < half; i++) {
			/* float32 as in transformers: the angle itself is part of the model */
			const float f = (float)(1 / pow(s->m->c.rope_theta, 2.0 * i / s->m->c.head_dim));
			const size_t at = (size_t)p * (size_t)half + (size_t)i;
			s->cosine[at] = rounded(s, cosf((float)p * f));
			s->sine[at] = rounded(s, sinf((float)p * f));
		}
}

/* ---- attention ---- */

static float *cache(const struct qwen3_seq *s, float *base, int layer, int position)
{
	const size_t width = (size_t)s->m->c.kv_heads * (size_t)s->m->c.head_dim;
	return base + ((size_t)layer * (size_t)s->room + (size_t)position) * width;
}

static void store(struct qwen3_seq *s, int layer, int position, const float *k, const float *v)
{
	const size_t bytes = (size_t)s->m->c.kv_heads * (size_t)s->m->c.head_dim * sizeof *k;
	if (s->fault == QWEN3_STALE_KV && position == 1) {
		k = cache(s, s->k, layer, 0);
		v = cache(s, s->v, layer, 0);
	}
	memcpy(cache(s, s->k, layer, position), k, bytes);
	memcpy(cache(s, s->v, layer, position), v, bytes);
}

/* One head of one token at `position` over all it may see; `score` has room for them. */
static void attend(const struct qwen3_seq *s, int layer, int head, int position, const float *q, float *out, float *score)
{
	const struct qwen3_config *c = &s->m->c;
	const int d = c->head_dim;
	const int kv = s->fault == QWEN3_GQA_MAP ? head % c->kv_heads : head / (c->heads / c->kv_heads);
	const int to = s->fault == QWEN3_DROP_NEWEST && position > 0 ? position - 1 : position;
	const int from = s->fault == QWEN3_WINDOW && position >= WINDOW ? position - WINDOW + 1 : 0;
	const float scale = (float)(1 / sqrt(d));
	float most = -INFINITY;
	double sum = 0;
	for (int p = from; p <= to; p++) {
		const float *k = cache(s, s->k, layer, p) + (size_t)kv * (size_t)d;
		float dot = 0;
		for (int i = 0; i < d; i++)
			dot += q[i] * k[i];
		score[p] = rounded(s, rounded(s, dot) * scale);
		most = fmaxf(most, score[p]);
	}
	for (int p = from; p <= to; p++)
		sum += score[p] = expf(score[p] - most);
	memset(out, 0, (size_t)d * sizeof *out);
	for (int p = from; p <= to; p++) {
		const float *v = cache(s, s->v, layer, p) + (size_t)kv * (size_t)d;
		const float weight = rounded(s, (float)(score[p] / sum));
		for (int i = 0; i < d; i++)
			out[i] += weight * v[i];
	}
	for (int i = 0; i < d; i++)
		out[i] = rounded(s, out[i]);
}

/* ---- a layer, a pass ---- */

/* What the tokens of one call need beside the cache, n tokens each. */
struct room {
	float *x, *y, *q, *k, *v, *gate, *up, *score;
};

static void attention(struct qwen3_seq *s, int layer, struct room *r, int n)
{
	const struct qwen3_config *c = &s->m->c;
	const struct qwen3_layer *l = &s->m->layer[layer];
	const int d = c->head_dim, qn = c->heads * d, kn = c->kv_heads * d, h = c->hidden, plain = s->fault == QWEN3_NO_QK_NORM;
	for (int t = 0; t < n; t++)
		norm(s, r->y + (size_t)t * (size_t)h, r->x + (size_t)t * (size_t)h, l->input_norm, h);
	matrix(s, r->q, r->y, l->q, n, qn, h, 0);
	matrix(s, r->k, r->y, l->k, n, kn, h, 0);
	matrix(s, r->v, r->y, l->v, n, kn, h, 0);
	for (int t = 0; t < n; t++) {
		const int p = s->len + t, late = s->fault == QWEN3_Q_LATE && p + 1 < s->room;
		float *q = r->q + (size_t)t * (size_t)qn, *k = r->k + (size_t)t * (size_t)kn;
		for (int i = 0; i < c->heads; i++) {
			if (!plain)
				norm(s, q + i * d, q + i * d, l->q_norm, d);
			rotate(s, q + i * d, p + late);
		}
		for (int i = 0; i < c->kv_heads; i++) {
			if (!plain)
				norm(s, k + i * d, k + i * d, l->k_norm, d);
			rotate(s, k + i * d, p);
		}
		store(s, layer, p, k, r->v + (size_t)t * (size_t)kn);
		for (int i = 0; i < c->heads; i++) /* the query is not needed after its own head's turn */
			attend(s, layer, i, p, q + i * d, r->gate + (size_t)t * (size_t)qn + i * d, r->score);
	}
	matrix(s, r->y, r->gate, l->o, n, h, qn, 0);
}

static void residual(const struct qwen3_seq *s, struct room *r, int n)
{
	const size_t count = (size_t)n * (size_t)s->m->c.hidden;
	for (size_t i = 0; i < count; i++)
		r->x[i] = rounded(s, r->x[i] + r->y[i]);
}

static void mlp(struct qwen3_seq *s, int layer, struct room *r, int n)
{
	const struct qwen3_layer *l = &s->m->layer[layer];
	const int h = s->m->c.hidden, m = s->m->c.intermediate;
	const size_t count = (size_t)n * (size_t)m;
	for (int t = 0; t < n; t++)
		norm(s, r->y + (size_t)t * (size_t)h, r->x + (size_t)t * (size_t)h, l->post_norm, h);
	matrix(s, r->gate, r->y, l->gate, n, m, h, 0);
	matrix(s, r->up, r->y, l->up, n, m, h, 0);
	for (size_t i = 0; i < count; i++) {
		const float g = r->gate[i];
		r->gate[i] = rounded(s, rounded(s, g / (1 + expf(-g))) * r->up[i]);
	}
	matrix(s, r->y, r->gate, l->down, n, h, m, 0);
}

static struct room room_make(const struct qwen3_seq *s, int n)
{
	const struct qwen3_config *c = &s->m->c;
	const size_t t = (size_t)n, h = (size_t)c->hidden, q = (size_t)(c->heads * c->head_dim),
		     kv = (size_t)(c->kv_heads * c->head_dim), m = (size_t)c->intermediate;
	const size_t wide = m > q ? m : q; /* the heads' results lie where the MLP's gate lies later */
	return (struct room){xcalloc(t * h, 4), xcalloc(t * h, 4), xcalloc(t * q, 4), xcalloc(t * kv, 4), xcalloc(t * kv, 4),
			     xcalloc(t * wide, 4), xcalloc(t * m, 4), xcalloc((size_t)s->room, 4)};
}

static void room_free(struct room *r)
{
	float *const part[] = {r->x, r->y, r->q, r->k, r->v, r->gate, r->up, r->score};
	for (size_t i = 0; i < sizeof part / sizeof *part; i++)
		free(part[i]);
}

static void head(struct qwen3_seq *s, struct room *r, int n, int last, float *logits)
{
	const struct qwen3_config *c = &s->m->c;
	const size_t h = (size_t)c->hidden;
	for (int t = n - last; t < n; t++)
		norm(s, r->y + (size_t)(t - n + last) * h, r->x + (size_t)t * h, s->m->norm, c->hidden);
	matrix(s, logits, r->y, s->m->head, last, c->vocab, c->hidden, 1);
	if (s->fault == QWEN3_VOCAB)
		for (int t = 0; t < last; t++)
			for (int i = c->vocab / 2; i < c->vocab; i++)
				logits[(size_t)t * (size_t)c->vocab + (size_t)i] = -INFINITY;
}

int qwen3_seq_append(struct qwen3_seq *s, const int32_t *ids, int n, int last, float *logits, struct err *e)
{
	const struct qwen3_config *c = &s->m->c;
	if (n < 1 || last < 0 || last > n || n > s->room - s->len)
		return err_set(e, EX_BADINPUT, "cannot append %d tokens to %d of %d", n, s->len, s->room);
	for (int t = 0; t < n; t++)
		if (ids[t] < 0 || ids[t] >= c->vocab)
			return err_set(e, EX_BADINPUT, "token %d is outside the vocabulary of %d", (int)ids[t], c->vocab);
	struct room r = room_make(s, n);
	for (int t = 0; t < n; t++)
		for (int i = 0; i < c->hidden; i++)
			r.x[(size_t)t * (size_t)c->hidden + (size_t)i] =
				dtype_from_bf16(s->m->embed[(size_t)ids[t] * (size_t)c->hidden + (size_t)i]);
	for (int l = 0; l < c->layers - (s->fault == QWEN3_SKIP_LAYER); l++) {
		attention(s, l, &r, n);
		residual(s, &r, n);
		mlp(s, l, &r, n);
		residual(s, &r, n);
	}
	s->len += n;
	if (logits && last > 0)
		head(s, &r, n, last, logits);
	room_free(&r);
	return 0;
}

int qwen3_seq_open(struct qwen3_seq **out, const struct qwen3 *m, enum qwen3_policy p, enum qwen3_fault f, int room,
		   struct err *e)
{
	const struct qwen3_config *c = &m->c;
	if (room < 1 || room > c->max_positions)
		return err_set(e, EX_BADINPUT, "a sequence of %d tokens; the model has %d positions", room, c->max_positions);
	struct qwen3_seq *s = xcalloc(1, sizeof *s);
	const size_t kv = (size_t)c->layers * (size_t)room * (size_t)(c->kv_heads * c->head_dim),
		     half = (size_t)room * (size_t)(c->head_dim / 2);
	int wide = c->intermediate > c->hidden ? c->intermediate : c->hidden;
	wide = wide > c->heads * c->head_dim ? wide : c->heads * c->head_dim;
	*s = (struct qwen3_seq){.m = m, .policy = p, .fault = f, .room = room, .k = xcalloc(kv, 4), .v = xcalloc(kv, 4),
				.cosine = xcalloc(half, 4), .sine = xcalloc(half, 4), .row = xcalloc((size_t)wide, 2)};
	angles(s);
	*out = s;
	return 0;
}

void qwen3_seq_close(struct qwen3_seq *s)
{
	if (!s)
		return;
	free(s->k);
	free(s->v);
	free(s->cosine);
	free(s->sine);
	free(s->row);
	free(s);
}

int32_t qwen3_argmax(const float *logits, int vocab)
{
	int32_t best = 0;
	for (int i = 0; i < vocab; i++) {
		if (isnan(logits[i]))
			return -1;
		if (logits[i] > logits[best])
			best = i;
	}
	return best;
}
