/*
 * model.cuh - config.json and the tensors of a folder, copied to the GPU.
 *
 * Every *.safetensors of the folder is mapped; which file holds a tensor is found by its name, so that single and sharded
 * checkpoints are the same. The harness has checked them before: what is missing here is an error without much ado.
 * Copies go through pinned memory, several threads filling it: a fresh process is timed from its first prompt on, but waits
 * for this.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef MODEL_CUH
#define MODEL_CUH

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

typedef __nv_bfloat16 bf16;

static void fail(const char *what)
{
	fprintf(stderr, "engine: %s\n", what);
	exit(3);
}

static void cuda_ok(cudaError_t r, const char *what)
{
	if (r == cudaSuccess)
		return;
	fprintf(stderr, "engine: %s: %s\n", what, cudaGetErrorString(r));
	exit(3);
}

struct layer {
	bf16 *norm1, *qn, *kn, *norm2;
	bf16 *qkv, *o, *gu, *down; /* [out, in]; gu: 8 rows of gate, 8 of up, ... */
};

struct model {
	int hidden, layers, heads, kv_heads, head_dim, inter, vocab;
	float eps, theta;
	bf16 *embed, *norm, *head;
	struct layer *layer;
};

struct shard {
	const char *header, *header_end, *data;
	size_t size;
};

static struct shard shards[64];
static int nshards;

static const char *map_file(const char *dir, const char *name, size_t *len)
{
	char path[4096];
	struct stat st;
	snprintf(path, sizeof path, "%s/%s", dir, name);
	int fd = open(path, O_RDONLY);
	if (fd < 0 || fstat(fd, &st) != 0)
		fail("cannot open the model");
	*len = (size_t)st.st_size;
	const char *p = (const char *)mmap(NULL, *len, PROT_READ, MAP_PRIVATE, fd, 0);
	if (p == MAP_FAILED)
		fail("cannot map the model");
	close(fd);
	return p;
}

static void map_shards(const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *f;
	if (!d)
		fail("cannot read the model's folder");
	while ((f = readdir(d))) {
		const size_t n = strlen(f->d_name), dot = strlen(".safetensors");
		if (n <= dot || strcmp(f->d_name + n - dot, ".safetensors") != 0 || nshards == 64)
			continue;
		struct shard *s = &shards[nshards++];
		const char *p = map_file(dir, f->d_name, &s->size);
		uint64_t header;
		memcpy(&header, p, 8);
		s->header = p + 8;
		s->header_end = s->data = p + 8 + header;
	}
	closedir(d);
}

/* The text behind "key" and a colon, within [p, end). */
static const char *behind(const char *p, const char *end, const char *key)
{
	const size_t n = strlen(key);
	while ((p = (const char *)memmem(p, (size_t)(end - p), key, n))) {
		if (p[-1] == '"' && p[n] == '"') {
			for (p += n + 1; p < end && (*p == ' ' || *p == ':' || *p == '\n'); p++)
				;
			return p;
		}
		p++;
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

/* Bytes of a tensor as they lie in the file; NULL: there is none of that name. */
static const char *find(const char *name, size_t *bytes)
{
	for (int i = 0; i < nshards; i++) {
		const char *at = behind(shards[i].header, shards[i].header_end, name);
		if (!at || !(at = behind(at, shards[i].header_end, "data_offsets")))
			continue;
		char *next;
		const unsigned long long from = strtoull(at + 1, &next, 10), to = strtoull(next + 1, NULL, 10);
		*bytes = (size_t)(to - from);
		return shards[i].data + from;
	}
	return NULL;
}

/* ---- copying ---- */

enum { COPIERS = 8, COPIES = 4096 };
static const size_t PIECE = (size_t)16 << 20;

static struct copy {
	const char *from;
	char *to;
	size_t bytes, width, pitch; /* pieces of `width` bytes go `pitch` apart */
} copies[COPIES];
static int ncopies, next_copy;

static void *copier(void *arg)
{
	char *pinned[2];
	cudaStream_t stream;
	cudaEvent_t done[2];
	int at = 0, i;
	(void)arg;
	cuda_ok(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "loading");
	for (int k = 0; k < 2; k++) {
		cuda_ok(cudaHostAlloc((void **)&pinned[k], PIECE, cudaHostAllocDefault), "pinned memory");
		cuda_ok(cudaEventCreateWithFlags(&done[k], cudaEventDisableTiming), "loading");
	}
	while ((i = __atomic_fetch_add(&next_copy, 1, __ATOMIC_RELAXED)) < ncopies) {
		const struct copy *c = &copies[i];
		const size_t whole = PIECE / c->width * c->width, piece = whole ? whole : PIECE;
		for (size_t o = 0; o < c->bytes; o += piece, at ^= 1) {
			const size_t n = c->bytes - o < piece ? c->bytes - o : piece;
			cuda_ok(cudaEventSynchronize(done[at]), "loading");
			memcpy(pinned[at], c->from + o, n);
			if (c->pitch == c->width)
				cuda_ok(cudaMemcpyAsync(c->to + o, pinned[at], n, cudaMemcpyHostToDevice, stream), "loading");
			else
				cuda_ok(cudaMemcpy2DAsync(c->to + o / c->width * c->pitch, c->pitch, pinned[at], c->width, c->width,
							  n / c->width, cudaMemcpyHostToDevice, stream), "loading");
			cuda_ok(cudaEventRecord(done[at], stream), "loading");
		}
	}
	cuda_ok(cudaStreamSynchronize(stream), "loading");
	for (int k = 0; k < 2; k++)
		cudaFreeHost(pinned[k]);
	return NULL;
}

static void copy_all(void)
{
	pthread_t t[COPIERS];
	for (int i = 0; i < COPIERS; i++)
		if (pthread_create(&t[i], NULL, copier, NULL))
			fail("cannot start a thread");
	for (int i = 0; i < COPIERS; i++)
		pthread_join(t[i], NULL);
}

/* Room for `bytes` on the GPU. */
static char *room(size_t bytes)
{
	void *p;
	cuda_ok(cudaMalloc(&p, bytes ? bytes : 1), "memory of the GPU");
	return (char *)p;
}

/* A tensor of `n` elements, to be copied by copy_all to `to`, or to new room. */
static bf16 *tensor(const char *name, size_t n, bf16 *to)
{
	size_t bytes;
	const char *from = find(name, &bytes);
	if (!from || bytes != n * sizeof(bf16) || ncopies == COPIES)
		fail("a tensor is missing, or of another size");
	if (!to)
		to = (bf16 *)room(bytes);
	copies[ncopies++] = (struct copy){from, (char *)to, bytes, bytes, bytes};
	return to;
}

static bf16 *part(int layer, const char *name, size_t n, bf16 *to)
{
	char full[128];
	snprintf(full, sizeof full, "model.layers.%d.%s.weight", layer, name);
	return tensor(full, n, to);
}

/* The last tensor goes in pieces of `width` bytes, as much room between them. */
static void in_turn(size_t width)
{
	copies[ncopies - 1].width = width;
	copies[ncopies - 1].pitch = 2 * width;
}

static void load_config(struct model *m, const char *dir, int *tied)
{
	size_t len;
	const char *c = map_file(dir, "config.json", &len), *end = c + len;
	m->hidden = (int)number(c, end, "hidden_size");
	m->layers = (int)number(c, end, "num_hidden_layers");
	m->heads = (int)number(c, end, "num_attention_heads");
	m->kv_heads = (int)number(c, end, "num_key_value_heads");
	m->head_dim = (int)number(c, end, "head_dim");
	m->inter = (int)number(c, end, "intermediate_size");
	m->vocab = (int)number(c, end, "vocab_size");
	m->eps = (float)number(c, end, "rms_norm_eps");
	m->theta = (float)number(c, end, "rope_theta");
	const char *tie = behind(c, end, "tie_word_embeddings");
	*tied = tie && *tie == 't';
}

static void load(struct model *m, const char *dir)
{
	int tied;
	load_config(m, dir, &tied);
	map_shards(dir);
	const size_t h = (size_t)m->hidden, d = (size_t)m->head_dim, q = (size_t)m->heads * d, kv = (size_t)m->kv_heads * d,
		     f = (size_t)m->inter;
	m->embed = tensor("model.embed_tokens.weight", (size_t)m->vocab * h, NULL);
	m->norm = tensor("model.norm.weight", h, NULL);
	m->head = tied ? m->embed : tensor("lm_head.weight", (size_t)m->vocab * h, NULL);
	m->layer = (struct layer *)calloc((size_t)m->layers, sizeof *m->layer);
	for (int i = 0; m->layer && i < m->layers; i++) {
		struct layer *l = &m->layer[i];
		l->norm1 = part(i, "input_layernorm", h, NULL);
		l->norm2 = part(i, "post_attention_layernorm", h, NULL);
		l->qn = part(i, "self_attn.q_norm", d, NULL);
		l->kn = part(i, "self_attn.k_norm", d, NULL);
		l->qkv = (bf16 *)room((q + 2 * kv) * h * 2);
		part(i, "self_attn.q_proj", q * h, l->qkv);
		part(i, "self_attn.k_proj", kv * h, l->qkv + q * h);
		part(i, "self_attn.v_proj", kv * h, l->qkv + (q + kv) * h);
		l->o = part(i, "self_attn.o_proj", h * q, NULL);
		l->gu = (bf16 *)room(2 * f * h * 2);
		part(i, "mlp.gate_proj", f * h, l->gu);
		in_turn(8 * h * 2);
		part(i, "mlp.up_proj", f * h, l->gu + 8 * h);
		in_turn(8 * h * 2);
		l->down = part(i, "mlp.down_proj", h * f, NULL);
	}
	copy_all();
}

#endif
