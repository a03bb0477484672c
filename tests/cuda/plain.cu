// plain.cu - an engine for tests: language CUDA, arithmetic on the host, so that it runs where no GPU is.
//
// A token at a time, float32 on bfloat16 weights, one model.safetensors, any dense Qwen3. PACE_US between steps; FLIP spoils
// an id of each batch.
//
// SPDX-License-Identifier: MIT
#include <engine_protocol.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <vector>
#include "kernels/wait.cuh"
#ifndef FLIP
#define FLIP 0
#endif

static const char *base, *header, *header_end;
static int hidden, layers, heads, kv_heads, dim, inter, vocab;
static float eps, theta;

static const char *slurp(const char *dir, const char *name, size_t *n)
{
	char path[4096];
	struct stat st;
	snprintf(path, sizeof path, "%s/%s", dir, name);
	int fd = open(path, O_RDONLY);
	if (fd < 0 || fstat(fd, &st))
		exit(3);
	*n = (size_t)st.st_size;
	return (const char *)mmap(NULL, *n, PROT_READ, MAP_PRIVATE, fd, 0);
}

static const char *behind(const char *p, const char *end, const char *key)
{
	size_t n = strlen(key);
	for (; p + n + 2 < end; p++)
		if (*p == '"' && !memcmp(p + 1, key, n) && p[n + 1] == '"') {
			for (p += n + 2; p < end && strchr(" :\n[", *p); p++)
				;
			return p;
		}
	exit(4);
}

static const uint16_t *tensor(int layer, const char *name)
{
	char full[128];
	if (layer < 0)
		snprintf(full, sizeof full, "model.%s.weight", name);
	else
		snprintf(full, sizeof full, "model.layers.%d.%s.weight", layer, name);
	return (const uint16_t *)(base + strtoull(behind(behind(header, header_end, full), header_end, "data_offsets"), NULL, 10));
}

static float wide(uint16_t b)
{
	uint32_t u = (uint32_t)b << 16;
	float f;
	memcpy(&f, &u, 4);
	return f;
}

static void matvec(const uint16_t *w, const float *x, float *y, int rows, int cols)
{
	for (int r = 0; r < rows; r++) {
		float s[8] = {0};
		for (int i = 0; i < cols; i += 8)
			for (int k = 0; k < 8; k++)
				s[k] += wide(w[(size_t)r * cols + i + k]) * x[i + k];
		y[r] = s[0] + s[1] + s[2] + s[3] + s[4] + s[5] + s[6] + s[7];
	}
}

static void norm(const uint16_t *w, const float *x, float *y, int n)
{
	float s = 0;
	for (int i = 0; i < n; i++)
		s += x[i] * x[i];
	s = 1 / sqrtf(s / n + eps);
	for (int i = 0; i < n; i++)
		y[i] = x[i] * s * wide(w[i]);
}

static void turn(const uint16_t *w, float *x, int at)
{
	norm(w, x, x, dim);
	for (int i = 0; i < dim / 2; i++) {
		float a = at * powf(theta, -2.f * i / dim), c = cosf(a), s = sinf(a), u = x[i], v = x[i + dim / 2];
		x[i] = u * c - v * s;
		x[i + dim / 2] = v * c + u * s;
	}
}

struct cache { std::vector<std::vector<float>> k, v; };

static int32_t token(cache &m, int32_t id, int at, int want)
{
	std::vector<float> x(hidden), n(hidden), q(heads * dim), k(kv_heads * dim), v(kv_heads * dim), o(heads * dim), y(hidden),
		g(inter), u(inter), p(at + 1);
	for (int i = 0; i < hidden; i++)
		x[i] = wide(tensor(-1, "embed_tokens")[(size_t)id * hidden + i]);
	for (int l = 0; l < layers; l++) {
		norm(tensor(l, "input_layernorm"), x.data(), n.data(), hidden);
		matvec(tensor(l, "self_attn.q_proj"), n.data(), q.data(), heads * dim, hidden);
		matvec(tensor(l, "self_attn.k_proj"), n.data(), k.data(), kv_heads * dim, hidden);
		matvec(tensor(l, "self_attn.v_proj"), n.data(), v.data(), kv_heads * dim, hidden);
		for (int h = 0; h < heads; h++)
			turn(tensor(l, "self_attn.q_norm"), &q[h * dim], at);
		for (int h = 0; h < kv_heads; h++)
			turn(tensor(l, "self_attn.k_norm"), &k[h * dim], at);
		m.k[l].insert(m.k[l].end(), k.begin(), k.end());
		m.v[l].insert(m.v[l].end(), v.begin(), v.end());
		for (int h = 0; h < heads; h++) {
			int from = h / (heads / kv_heads) * dim, row = kv_heads * dim;
			float most = -INFINITY, sum = 0;
			for (int t = 0; t <= at; t++) {
				float s = 0;
				for (int i = 0; i < dim; i++)
					s += q[h * dim + i] * m.k[l][t * row + from + i];
				p[t] = s / sqrtf(dim);
				most = fmaxf(most, p[t]);
			}
			for (int t = 0; t <= at; t++)
				sum += p[t] = expf(p[t] - most);
			for (int i = 0; i < dim; i++) {
				float s = 0;
				for (int t = 0; t <= at; t++)
					s += p[t] / sum * m.v[l][t * row + from + i];
				o[h * dim + i] = s;
			}
		}
		matvec(tensor(l, "self_attn.o_proj"), o.data(), y.data(), hidden, heads * dim);
		for (int i = 0; i < hidden; i++)
			x[i] += y[i];
		norm(tensor(l, "post_attention_layernorm"), x.data(), n.data(), hidden);
		matvec(tensor(l, "mlp.gate_proj"), n.data(), g.data(), inter, hidden);
		matvec(tensor(l, "mlp.up_proj"), n.data(), u.data(), inter, hidden);
		for (int i = 0; i < inter; i++)
			g[i] = g[i] / (1 + expf(-g[i])) * u[i];
		matvec(tensor(l, "mlp.down_proj"), g.data(), y.data(), hidden, inter);
		for (int i = 0; i < hidden; i++)
			x[i] += y[i];
	}
	if (!want)
		return 0;
	std::vector<float> logit(vocab);
	norm(tensor(-1, "norm"), x.data(), n.data(), hidden);
	matvec(tensor(-1, "embed_tokens"), n.data(), logit.data(), vocab, hidden);
	int best = 0;
	for (int i = 1; i < vocab; i++)
		best = logit[i] > logit[best] ? i : best;
	return best;
}

int main(int argc, char **argv)
{
	size_t n, c;
	uint64_t length;
	(void)argc;
	const char *file = slurp(argv[1], "model.safetensors", &n), *config = slurp(argv[1], "config.json", &c), *end = config + c;
	memcpy(&length, file, 8);
	header = file + 8, header_end = header + length, base = header_end;
	hidden = atoi(behind(config, end, "hidden_size")), layers = atoi(behind(config, end, "num_hidden_layers"));
	heads = atoi(behind(config, end, "num_attention_heads")), kv_heads = atoi(behind(config, end, "num_key_value_heads"));
	dim = atoi(behind(config, end, "head_dim")), inter = atoi(behind(config, end, "intermediate_size"));
	vocab = atoi(behind(config, end, "vocab_size")), eps = (float)atof(behind(config, end, "rms_norm_eps"));
	theta = (float)atof(behind(config, end, "rope_theta"));
	engine_ready();
	struct engine_request q;
	while (engine_next(&q)) {
		std::vector<cache> m(q.batch);
		std::vector<int32_t> id(q.batch);
		int64_t due = now_ns() + 4 * PACE_US * 1000LL; // above what the prompts take
		for (int b = 0; b < q.batch; b++) {
			m[b].k.resize(layers), m[b].v.resize(layers);
			for (int t = 0; t < q.prompt; t++)
				id[b] = token(m[b], q.ids[b * q.prompt + t], t, t == q.prompt - 1);
		}
		for (int t = 0; t < q.steps; t++) {
			for (int b = 0; b < q.batch && t; b++)
				id[b] = token(m[b], id[b], q.prompt + t - 1, 1);
			due += PACE_US * 1000LL;
			wait_until(due);
			std::vector<int32_t> out = id;
			out[0] ^= t == 5 ? FLIP : 0;
			engine_step(&q, out.data());
		}
	}
	return 0;
}
