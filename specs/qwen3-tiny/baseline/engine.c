/*
 * engine.c - a plain Qwen3 engine on the processor: what a competent person writes first.
 *
 * Whole prompts at once (each matrix is read once for all tokens of a tile), a cache of keys and values, then a step at a
 * time for the whole batch. float32 arithmetic on bfloat16 weights. One thread, no vector intrinsics.
 *
 * Tunables: tokens that share one pass over a row of weights; partial sums of a dot product (with one, the compiler may
 * not reorder it into vectors); weights widened to float32 once, when loading, or in every pass; the sines of positions
 * from a table, or computed each time.
 */
// tunables:begin
#define TILE 8 // tune: 1 2 4 8 16 32
#define LANES 1 // tune: 1 4 8 16
#define WIDEN 0 // tune: 0 1
#define TABLE 0 // tune: 0 1
// tunables:end

#include "engine_protocol.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

static void fail(const char *what)
{
	fprintf(stderr, "engine: %s\n", what);
	exit(3);
}

static float wide(uint16_t b)
{
	const uint32_t u = (uint32_t)b << 16;
	float f;
	memcpy(&f, &u, sizeof f);
	return f;
}

static float *room(size_t n)
{
	float *p = malloc((n ? n : 1) * sizeof *p);
	if (!p)
		fail("out of memory");
	return p;
}

/* A matrix as matmul reads it. */
#if WIDEN
typedef float weight;
#define WEIGHT(w) (w)
#else
typedef uint16_t weight;
#define WEIGHT(w) wide(w)
#endif

/* ---- the model: config.json and model.safetensors, both of which the harness has checked ---- */

static struct {
	int hidden, layers, heads, kv_heads, head_dim, inter, vocab;
	float eps, theta;
	const uint16_t *embed, *norm;
	const weight *head;
	struct layer {
		const uint16_t *norm1, *qn, *kn, *norm2;
		const weight *q, *k, *v, *o, *gate, *up, *down;
	} *layer;
} m;

static const char *slurp(const char *dir, const char *name, size_t *len)
{
	char path[4096];
	struct stat st;
	snprintf(path, sizeof path, "%s/%s", dir, name);
	int fd = open(path, O_RDONLY);
	if (fd < 0 || fstat(fd, &st) != 0)
		fail("cannot open the model");
	*len = (size_t)st.st_size;
	const char *p = mmap(NULL, *len, PROT_READ, MAP_PRIVATE, fd, 0);
	if (p == MAP_FAILED)
		fail("cannot map the model");
	close(fd);
	return p;
}

/* The text behind "key" and a colon, within [p, end). */
static const char *behind(const char *p, const char *end, const char *key)
{
	const size_t n = strlen(key);
	for (; p + n + 2 < end; p++)
		if (*p == '"' && memcmp(p + 1, key, n) == 0 && p[n + 1] == '"') {
			for (p += n + 2; p < end && (*p == ' ' || *p == ':' || *p == '\n'); p++)
				;
			return p;
		}
	return NULL;
}

static double number(const char *p, const char *end, const char *key)
{
	char word[32] = "";
	const char *at = behind(p, end, key);
	if (!at)
		fail("config.json lacks a key");
	memcpy(word, at, (size_t)(end - at) < sizeof word - 1 ? (size_t)(end - at) : sizeof word - 1);
	return atof(word);
}

static const char *data, *header, *header_end;

static const uint16_t *tensor(const char *name)
{
	const char *at = behind(header, header_end, name);
	if (at)
		at = behind(at, header_end, "data_offsets");
	if (!at)
		fail("a tensor is missing");
	return (const uint16_t *)(const void *)(data + strtoull(at + 1, NULL, 10));
}

static const uint16_t *part(int layer, const char *name)
{
	char full[128];
	snprintf(full, sizeof full, "model.layers.%d.%s.weight", layer, name);
	return tensor(full);
}

/* A matrix of `n` weights. */
static const weight *matrix(const uint16_t *from, size_t n)
{
#if WIDEN
	float *to = room(n);
	for (size_t i = 0; i < n; i++)
		to[i] = wide(from[i]);
	return to;
#else
	(void)n;
	return from;
#endif
}

static void load(const char *dir)
{
	size_t len, n = 0;
	const char *c = slurp(dir, "config.json", &len), *end = c + len;
	m.hidden = (int)number(c, end, "hidden_size");
	m.layers = (int)number(c, end, "num_hidden_layers");
	m.heads = (int)number(c, end, "num_attention_heads");
	m.kv_heads = (int)number(c, end, "num_key_value_heads");
	m.head_dim = (int)number(c, end, "head_dim");
	m.inter = (int)number(c, end, "intermediate_size");
	m.vocab = (int)number(c, end, "vocab_size");
	m.eps = (float)number(c, end, "rms_norm_eps");
	m.theta = (float)number(c, end, "rope_theta");
	const char *tie = behind(c, end, "tie_word_embeddings");
	const char *file = slurp(dir, "model.safetensors", &len);
	for (int i = 7; i >= 0; i--)
		n = n << 8 | (unsigned char)file[i];
	header = file + 8;
	header_end = data = header + n;
	m.embed = tensor("model.embed_tokens.weight");
	m.norm = tensor("model.norm.weight");
	const size_t h = (size_t)m.hidden, q = (size_t)(m.heads * m.head_dim), kv = (size_t)(m.kv_heads * m.head_dim),
		     f = (size_t)m.inter;
	m.head = matrix(tie && *tie == 't' ? m.embed : tensor("lm_head.weight"), (size_t)m.vocab * h);
	m.layer = calloc((size_t)m.layers, sizeof *m.layer);
	for (int i = 0; m.layer && i < m.layers; i++)
		m.layer[i] = (struct layer){
			.norm1 = part(i, "input_layernorm"), .norm2 = part(i, "post_attention_layernorm"),
			.qn = part(i, "self_attn.q_norm"), .kn = part(i, "self_attn.k_norm"),
			.q = matrix(part(i, "self_attn.q_proj"), q * h), .k = matrix(part(i, "self_attn.k_proj"), kv * h),
			.v = matrix(part(i, "self_attn.v_proj"), kv * h), .o = matrix(part(i, "self_attn.o_proj"), h * q),
			.gate = matrix(part(i, "mlp.gate_proj"), f * h), .up = matrix(part(i, "mlp.up_proj"), f * h),
			.down = matrix(part(i, "mlp.down_proj"), h * f)};
}

/* ---- arithmetic ---- */

static void rms(float *y, const float *x, const uint16_t *w, int n)
{
	float sum = 0;
	for (int i = 0; i < n; i++)
		sum += x[i] * x[i];
	const float s = 1 / sqrtf(sum / (float)n + m.eps);
	for (int i = 0; i < n; i++)
		y[i] = x[i] * s * wide(w[i]);
}

static float dot(const float *x, const weight *w, int n)
{
	float part[LANES] = {0}, sum = 0;
	int i = 0;
	for (; i + LANES <= n; i += LANES)
		for (int l = 0; l < LANES; l++)
			part[l] += x[i + l] * WEIGHT(w[i + l]);
	for (; i < n; i++)
		sum += x[i] * WEIGHT(w[i]);
	for (int l = 0; l < LANES; l++)
		sum += part[l];
	return sum;
}

/* y[t][out] = x[t][in] w[out][in] for `tokens` tokens, TILE of them in one pass over w. */
static void matmul(float *y, const float *x, const weight *w, int tokens, int out, int in)
{
	for (int t0 = 0; t0 < tokens; t0 += TILE) {
		const int n = tokens - t0 < TILE ? tokens - t0 : TILE;
		for (int o = 0; o < out; o++)
			for (int t = t0; t < t0 + n; t++)
				y[(size_t)t * (size_t)out + (size_t)o] =
					dot(x + (size_t)t * (size_t)in, w + (size_t)o * (size_t)in, in);
	}
}

/* Sine and cosine of pair i at a position. */
static void turn(int position, int i, float *c, float *sn)
{
#if TABLE
	static float *table;
	static int rows;
	const int half = m.head_dim / 2;
	if (position >= rows) {
		const int most = position + 256;
		free(table);
		table = room((size_t)most * (size_t)half * 2);
		for (int p = 0; p < most; p++)
			for (int k = 0; k < half; k++) {
				const float a = (float)p / powf(m.theta, 2.0f * (float)k / (float)m.head_dim);
				float *at = table + ((size_t)p * (size_t)half + (size_t)k) * 2;
				at[0] = cosf(a), at[1] = sinf(a);
			}
		rows = most;
	}
	const float *at = table + ((size_t)position * (size_t)half + (size_t)i) * 2;
	*c = at[0], *sn = at[1];
#else
	const float a = (float)position / powf(m.theta, 2.0f * (float)i / (float)m.head_dim);
	*c = cosf(a), *sn = sinf(a);
#endif
}

static void rope(float *x, int position)
{
	const int half = m.head_dim / 2;
	for (int i = 0; i < half; i++) {
		float c, sn;
		turn(position, i, &c, &sn);
		const float p = x[i], q = x[i + half];
		x[i] = p * c - q * sn;
		x[i + half] = q * c + p * sn;
	}
}

/* ---- a batch ---- */

static struct {
	int batch, most;           /* sequences, positions of each */
	float *k, *v;              /* [layers][batch][most][kv_heads x head_dim] */
	float *x, *y, *q, *kk, *vv, *att, *gate, *up, *logits, *score;
} s;

static void make_room(const struct engine_request *r)
{
	float **const all[] = {&s.k, &s.v, &s.x, &s.y, &s.q, &s.kk, &s.vv, &s.att, &s.gate, &s.up, &s.logits, &s.score};
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		free(*all[i]);
	s.batch = r->batch;
	s.most = r->prompt + r->steps;
	const size_t tokens = (size_t)r->batch * (size_t)r->prompt, kv = (size_t)(m.kv_heads * m.head_dim),
		     q = (size_t)(m.heads * m.head_dim), cache = (size_t)m.layers * (size_t)s.batch * (size_t)s.most * kv;
	s.k = room(cache), s.v = room(cache);
	s.x = room(tokens * (size_t)m.hidden), s.y = room(tokens * (size_t)m.hidden);
	s.q = room(tokens * q), s.att = room(tokens * q);
	s.kk = room(tokens * kv), s.vv = room(tokens * kv);
	s.gate = room(tokens * (size_t)m.inter), s.up = room(tokens * (size_t)m.inter);
	s.logits = room((size_t)s.batch * (size_t)m.vocab), s.score = room((size_t)s.most);
}

static float *cached(float *base, int layer, int b, int position)
{
	const size_t kv = (size_t)(m.kv_heads * m.head_dim);
	return base + (((size_t)layer * (size_t)s.batch + (size_t)b) * (size_t)s.most + (size_t)position) * kv;
}

static void attend(float *out, const float *q, int layer, int b, int head, int position)
{
	const int d = m.head_dim, g = head / (m.heads / m.kv_heads);
	const float scale = 1 / sqrtf((float)d);
	float most = -INFINITY, sum = 0;
	for (int p = 0; p <= position; p++) {
		const float *k = cached(s.k, layer, b, p) + g * d;
		float product = 0;
		for (int i = 0; i < d; i++)
			product += q[i] * k[i];
		s.score[p] = product * scale;
		most = s.score[p] > most ? s.score[p] : most;
	}
	memset(out, 0, (size_t)d * sizeof *out);
	for (int p = 0; p <= position; p++) {
		const float *v = cached(s.v, layer, b, p) + g * d, e = expf(s.score[p] - most);
		sum += e;
		for (int i = 0; i < d; i++)
			out[i] += e * v[i];
	}
	for (int i = 0; i < d; i++)
		out[i] /= sum;
}

/* `per` new tokens of each sequence from `position` on; x holds their embeddings, [batch, per, hidden]. */
static void forward(int per, int position)
{
	const int n = s.batch * per, h = m.hidden, d = m.head_dim, q = m.heads * d, kv = m.kv_heads * d;
	for (int l = 0; l < m.layers; l++) {
		const struct layer *w = &m.layer[l];
		for (int t = 0; t < n; t++)
			rms(s.y + (size_t)t * (size_t)h, s.x + (size_t)t * (size_t)h, w->norm1, h);
		matmul(s.q, s.y, w->q, n, q, h);
		matmul(s.kk, s.y, w->k, n, kv, h);
		matmul(s.vv, s.y, w->v, n, kv, h);
		for (int t = 0; t < n; t++) {
			const int b = t / per, p = position + t % per;
			float *tq = s.q + (size_t)t * (size_t)q, *tk = s.kk + (size_t)t * (size_t)kv;
			for (int i = 0; i < m.heads; i++) {
				rms(tq + i * d, tq + i * d, w->qn, d);
				rope(tq + i * d, p);
			}
			for (int i = 0; i < m.kv_heads; i++) {
				rms(tk + i * d, tk + i * d, w->kn, d);
				rope(tk + i * d, p);
			}
			memcpy(cached(s.k, l, b, p), tk, (size_t)kv * sizeof *tk);
			memcpy(cached(s.v, l, b, p), s.vv + (size_t)t * (size_t)kv, (size_t)kv * sizeof *tk);
			for (int i = 0; i < m.heads; i++)
				attend(s.att + (size_t)t * (size_t)q + i * d, tq + i * d, l, b, i, p);
		}
		matmul(s.y, s.att, w->o, n, h, q);
		for (int i = 0; i < n * h; i++)
			s.x[i] += s.y[i];
		for (int t = 0; t < n; t++)
			rms(s.y + (size_t)t * (size_t)h, s.x + (size_t)t * (size_t)h, w->norm2, h);
		matmul(s.gate, s.y, w->gate, n, m.inter, h);
		matmul(s.up, s.y, w->up, n, m.inter, h);
		for (int i = 0; i < n * m.inter; i++)
			s.gate[i] = s.gate[i] / (1 + expf(-s.gate[i])) * s.up[i];
		matmul(s.y, s.gate, w->down, n, h, m.inter);
		for (int i = 0; i < n * h; i++)
			s.x[i] += s.y[i];
	}
}

/* The best next id of each sequence, from the last of its `per` tokens. */
static void choose(int per, int32_t *next)
{
	for (int b = 0; b < s.batch; b++)
		rms(s.y + (size_t)b * (size_t)m.hidden, s.x + ((size_t)b * (size_t)per + (size_t)per - 1) * (size_t)m.hidden,
		    m.norm, m.hidden);
	matmul(s.logits, s.y, m.head, s.batch, m.vocab, m.hidden);
	for (int b = 0; b < s.batch; b++) {
		const float *x = s.logits + (size_t)b * (size_t)m.vocab;
		next[b] = 0;
		for (int i = 1; i < m.vocab; i++)
			if (x[i] > x[next[b]])
				next[b] = i;
	}
}

static void embed(const int32_t *ids, int n)
{
	for (int t = 0; t < n; t++)
		for (int i = 0; i < m.hidden; i++)
			s.x[(size_t)t * (size_t)m.hidden + (size_t)i] = wide(m.embed[(size_t)ids[t] * (size_t)m.hidden + (size_t)i]);
}

static void answer(const struct engine_request *r)
{
	int32_t next[ENGINE_BATCH_MOST];
	make_room(r);
	embed(r->ids, r->batch * r->prompt);
	forward(r->prompt, 0);
	choose(r->prompt, next);
	engine_step(r, next);
	for (int t = 1; t < r->steps; t++) {
		embed(next, r->batch);
		forward(1, r->prompt + t - 1);
		choose(1, next);
		engine_step(r, next);
	}
}

int main(int argc, char **argv)
{
	struct engine_request r;
	if (argc != 2)
		fail("usage: engine MODEL_DIR");
	load(argv[1]);
	engine_ready();
	while (engine_next(&r))
		answer(&r);
	return 0;
}
