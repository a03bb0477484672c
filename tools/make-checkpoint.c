/*
 * make-checkpoint.c - write a random Qwen3 checkpoint: real safetensors and config.json, from a seed.
 *
 * For work on engine problems where no trained weights are at hand. Weights of all projections are normal with
 * deviation 0.02 as transformers initialises them; the embedding (tied head) has 0.25 and the norms of queries
 * and keys a gain of 1.5, because with the usual values a random model cannot tell a right engine from
 * a wrong one: its logits are all alike. The tiny shape has 0.12: with 0.02 its narrow layers add so little to
 * the embedding that a wrong rotation of queries and keys changed hardly a token (0.06: 15 % of 200; 0.12: 94 %,
 * while rounding to bfloat16 costs 0.21 logits at most). Same shape and seed, same bytes.
 *
 * A tensor is drawn from its name and the seed, 16 bits a weight through a table of the normal distribution,
 * so that gigabytes take seconds. The folder appears whole (built under a temporary name, then renamed).
 *
 * SPDX-License-Identifier: MIT
 */
#include "buf.h"
#include "dtype.h"
#include "err.h"
#include "file.h"
#include "hash.h"
#include "jsonw.h"
#include "qwen3.h"
#include "stats.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char HELP[] =
	"make-checkpoint - write a random Qwen3 checkpoint from a seed\n"
	"\n"
	"usage: make-checkpoint SHAPE DIR [--seed N] [--shards N]\n"
	"\n"
	"SHAPE   tiny (4 layers of 64, half a megabyte: for a machine without a GPU), 0.6B, 1.7B, 4B or 8B\n"
	"DIR     must not exist; gets config.json and model.safetensors, or shards and their index\n"
	"--seed  default 1; the same seed gives the same bytes\n"
	"\n"
	"Such a model says nothing sensible. It is as large, as fast and as exact to compute as a trained one.\n"
	"\n"
	"exit    0 written; 2 usage, or DIR is there; 111 a system call failed\n";

static const struct shape {
	const char *name;
	struct qwen3_config c;
	double deviation; /* of the weights of projections */
} SHAPES[] = {
	{"tiny", {64, 4, 4, 2, 32, 192, 512, 4096, 1, 1e6, 1e-6}, 0.12},
	{"0.6B", {1024, 28, 16, 8, 128, 3072, 151936, 40960, 1, 1e6, 1e-6}, 0.02},
	{"1.7B", {2048, 28, 16, 8, 128, 6144, 151936, 40960, 1, 1e6, 1e-6}, 0.02},
	{"4B", {2560, 36, 32, 8, 128, 9728, 151936, 40960, 1, 1e6, 1e-6}, 0.02},
	{"8B", {4096, 36, 32, 8, 128, 12288, 151936, 40960, 0, 1e6, 1e-6}, 0.02},
};

static const double EMBEDDING = 0.25, QK_GAIN = 1.5;

enum { TENSORS = 2000, CHUNK = 1 << 20 };

struct tensor {
	char name[QWEN3_NAME];
	int64_t shape[2];
	int rank, shard;
	uint64_t bytes;
};

static struct tensor tensor[TENSORS];
static int tensors;

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct tensor *)a)->name, ((const struct tensor *)b)->name);
}

static uint64_t list(const struct qwen3_config *c, int shards)
{
	uint64_t total = 0, at = 0;
	for (struct tensor *t = tensor; qwen3_tensor(c, tensors, t->name, t->shape, &t->rank); tensors++, t++) {
		t->bytes = 2 * (uint64_t)t->shape[0] * (t->rank == 2 ? (uint64_t)t->shape[1] : 1);
		total += t->bytes;
	}
	qsort(tensor, (size_t)tensors, sizeof *tensor, by_name); /* as the format's writer does */
	for (int i = 0; i < tensors; i++) {
		tensor[i].shard = (int)((double)at / (double)total * shards);
		at += tensor[i].bytes;
	}
	return total;
}

/* ---- weights ---- */

static uint16_t normal[65536];

static void make_table(double deviation)
{
	for (int i = 0; i < 65536; i++)
		normal[i] = dtype_to_bf16((float)(deviation * stats_normal_quantile((i + 0.5) / 65536)));
}

/* splitmix64 (Steele, Lea, Flood 2014): any word of the stream from its number. */
static uint64_t word(uint64_t key, uint64_t i)
{
	uint64_t z = key + (i + 1) * UINT64_C(0x9E3779B97F4A7C15);
	z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
	return z ^ (z >> 31);
}

static void write_all(int fd, const void *data, size_t n, const char *path)
{
	for (const char *p = data; n > 0;) {
		ssize_t k = write(fd, p, n);
		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0)
			die(EX_SYS, "cannot write '%s': %s", path, strerror(errno));
		p += k;
		n -= (size_t)k;
	}
}

static void write_tensor(int fd, const struct tensor *t, double deviation, uint64_t seed, const char *path)
{
	static uint16_t chunk[CHUNK];
	uint8_t h[32];
	uint64_t key = 0, n = t->bytes / 2;
	double constant = strstr(t->name, "q_norm") || strstr(t->name, "k_norm") ? QK_GAIN : 1;
	char *text = xasprintf("%llu:%s", (unsigned long long)seed, t->name);
	hash_bytes(text, strlen(text), h);
	free(text);
	for (int i = 0; i < 8; i++)
		key = key << 8 | h[i];
	if (t->rank == 2)
		make_table(strstr(t->name, "embed") || strstr(t->name, "lm_head") ? EMBEDDING : deviation);
	for (uint64_t at = 0; at < n; at += CHUNK) {
		size_t k = n - at < CHUNK ? (size_t)(n - at) : CHUNK;
		for (size_t i = 0; i < k; i += 4) {
			uint64_t r = word(key, (at + i) / 4);
			for (size_t j = i; j < i + 4 && j < k; j++, r >>= 16)
				chunk[j] = t->rank == 2 ? normal[r & 0xffff] : dtype_to_bf16((float)constant);
		}
		write_all(fd, chunk, 2 * k, path);
	}
}

/* ---- files ---- */

static void shard_name(char *out, size_t size, int shard, int shards)
{
	if (shards == 1)
		snprintf(out, size, "model.safetensors");
	else
		snprintf(out, size, "model-%05d-of-%05d.safetensors", shard + 1, shards);
}

static void write_shard(const char *dir, const struct shape *s, int shard, int shards, uint64_t seed)
{
	char name[64];
	struct jsonw w = {0};
	uint64_t at = 0;
	jw_obj(&w, NULL);
	jw_obj(&w, "__metadata__");
	jw_str(&w, "format", "pt");
	jw_end(&w);
	for (int i = 0; i < tensors; i++) {
		const struct tensor *t = &tensor[i];
		if (t->shard != shard)
			continue;
		jw_obj(&w, t->name);
		jw_str(&w, "dtype", "BF16");
		jw_arr(&w, "shape");
		for (int k = 0; k < t->rank; k++)
			jw_int(&w, NULL, t->shape[k]);
		jw_end(&w);
		jw_arr(&w, "data_offsets");
		jw_int(&w, NULL, (int64_t)at);
		jw_int(&w, NULL, (int64_t)(at += t->bytes));
		jw_end(&w);
		jw_end(&w);
	}
	jw_end(&w);
	while (w.out.len % 8)
		buf_addc(&w.out, ' ');
	shard_name(name, sizeof name, shard, shards);
	char *path = xasprintf("%s/%s", dir, name);
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd < 0)
		die(EX_SYS, "cannot make '%s': %s", path, strerror(errno));
	uint8_t length[8];
	for (int i = 0; i < 8; i++)
		length[i] = (uint8_t)(w.out.len >> (8 * i));
	write_all(fd, length, 8, path);
	write_all(fd, w.out.data, w.out.len, path);
	for (int i = 0; i < tensors; i++)
		if (tensor[i].shard == shard)
			write_tensor(fd, &tensor[i], s->deviation, seed, path);
	if (fsync(fd) != 0 || close(fd) != 0)
		die(EX_SYS, "cannot write '%s': %s", path, strerror(errno));
	jw_free(&w);
	free(path);
}

static void put(const char *dir, const char *name, struct jsonw *w)
{
	struct err e;
	char *path = xasprintf("%s/%s", dir, name);
	buf_addc(&w->out, '\n');
	if (file_write(path, w->out.data, w->out.len, 0666, &e))
		die_err(&e);
	jw_free(w);
	free(path);
}

static void write_index(const char *dir, int shards, uint64_t total)
{
	char name[64];
	struct jsonw w = {.pretty = 1};
	jw_obj(&w, NULL);
	jw_obj(&w, "metadata");
	jw_int(&w, "total_size", (int64_t)total);
	jw_end(&w);
	jw_obj(&w, "weight_map");
	for (int i = 0; i < tensors; i++) {
		shard_name(name, sizeof name, tensor[i].shard, shards);
		jw_str(&w, tensor[i].name, name);
	}
	jw_end(&w);
	jw_end(&w);
	put(dir, "model.safetensors.index.json", &w);
}

static void write_config(const char *dir, const struct shape *s, uint64_t seed)
{
	const struct qwen3_config *c = &s->c;
	struct jsonw w = {.pretty = 1};
	jw_obj(&w, NULL);
	jw_arr(&w, "architectures");
	jw_str(&w, NULL, "Qwen3ForCausalLM");
	jw_end(&w);
	jw_str(&w, "model_type", "qwen3");
	jw_bool(&w, "attention_bias", 0);
	jw_int(&w, "head_dim", c->head_dim);
	jw_str(&w, "hidden_act", "silu");
	jw_int(&w, "hidden_size", c->hidden);
	jw_int(&w, "intermediate_size", c->intermediate);
	jw_int(&w, "max_position_embeddings", c->max_positions);
	jw_int(&w, "num_attention_heads", c->heads);
	jw_int(&w, "num_hidden_layers", c->layers);
	jw_int(&w, "num_key_value_heads", c->kv_heads);
	jw_num(&w, "rms_norm_eps", c->eps);
	jw_num(&w, "rope_theta", c->rope_theta);
	jw_bool(&w, "tie_word_embeddings", c->tied);
	jw_str(&w, "torch_dtype", "bfloat16");
	jw_bool(&w, "use_cache", 1);
	jw_bool(&w, "use_sliding_window", 0);
	jw_int(&w, "vocab_size", c->vocab);
	jw_obj(&w, "made_by");
	jw_str(&w, "tool", "make-checkpoint");
	jw_str(&w, "shape", s->name);
	jw_int(&w, "seed", (int64_t)seed);
	jw_end(&w);
	jw_end(&w);
	put(dir, "config.json", &w);
}

static long number(const char *text, const char *what, long max)
{
	char *end;
	errno = 0;
	long v = text ? strtol(text, &end, 10) : 0;
	if (!text || errno || *end || end == text || v < 1 || v > max)
		die(EX_BADUSE, "%s must be 1 to %ld", what, max);
	return v;
}

int main(int argc, char **argv)
{
	const struct shape *s = NULL;
	const char *dir = NULL, *shape = NULL;
	uint64_t seed = 1;
	int shards = 1;
	struct err e;
	prog_name(argv[0]);
	if (argc == 2 && (!strcmp(argv[1], "-h") || !strcmp(argv[1], "--help"))) {
		fputs(HELP, stdout);
		return 0;
	}
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--seed"))
			seed = (uint64_t)number(argv[++i], "--seed", 1L << 52);
		else if (!strcmp(argv[i], "--shards"))
			shards = (int)number(argv[++i], "--shards", 64);
		else if (argv[i][0] == '-' || dir)
			die(EX_BADUSE, "unknown argument '%s'; -h tells", argv[i]);
		else if (!shape)
			shape = argv[i];
		else
			dir = argv[i];
	}
	for (size_t i = 0; shape && i < sizeof SHAPES / sizeof *SHAPES; i++)
		if (!strcmp(shape, SHAPES[i].name))
			s = &SHAPES[i];
	if (!s || !dir)
		die(EX_BADUSE, "usage: make-checkpoint tiny|0.6B|1.7B|4B|8B DIR [--seed N] [--shards N]");
	if (file_exists(dir))
		die(EX_BADUSE, "'%s' exists; choose another name", dir);
	char *tmp = xasprintf("%s.tmp.%ld", dir, (long)getpid());
	if (dir_make(tmp, &e))
		die_err(&e);
	uint64_t total = list(&s->c, shards);
	for (int i = 0; i < shards; i++)
		write_shard(tmp, s, i, shards, seed);
	if (shards > 1)
		write_index(tmp, shards, total);
	write_config(tmp, s, seed);
	if (rename(tmp, dir) != 0)
		die(EX_SYS, "cannot name '%s': %s", dir, strerror(errno));
	printf("%s: Qwen3 %s, %llu parameters, %llu bytes of weights, seed %llu\n", dir, s->name,
	       (unsigned long long)qwen3_parameters(&s->c), (unsigned long long)total, (unsigned long long)seed);
	free(tmp);
	return 0;
}
