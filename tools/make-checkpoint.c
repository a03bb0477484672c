/*
 * make-checkpoint.c - write a random Qwen3 checkpoint: real safetensors and config.json, from a seed.
 *
 * For work on engine problems where no trained weights are at hand. A random model must be able to tell a right engine
 * from a wrong one, and two right ones, which round differently, must agree; with the usual deviations it does neither.
 * In both recipes the embedding has 0.25 and the norms of queries and keys a gain of 1.5.
 *
 * uniform: projections have one deviation. For the tiny shape 0.12: with 0.02 its narrow layers add so little to the
 * embedding that a wrong rotation of queries and keys changed hardly a token (0.06: 15 % of 200; 0.12: 94 %, while rounding
 * to bfloat16 costs 0.21 logits at most). For wide shapes 0.02, as transformers initialises: that grows with the
 * width, so that at 0.6B answers become one id for ever and at 4B rounding alone costs 5 logits.
 * scaled: what a projection gives does not grow with its width, the layers together add twice the embedding, and the
 * last norm has random signs, which end the echo of a tied head, and a size that gives logits a deviation of 4. On an
 * H200 91 to 95 % of greedy ids differ, bfloat16 costs 0.006 to 0.013 logits in the mean, int8 weights three to four
 * times that, a wrong rotation 5 and more.
 *
 * A tensor is drawn from its name and the seed, 16 bits a weight through a table of the normal distribution, in pieces by
 * as many threads as there are processors: same shape, recipe and seed, same bytes. The folder appears whole (built under a
 * temporary name, then renamed).
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
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char HELP[] =
	"make-checkpoint - write a random Qwen3 checkpoint from a seed\n"
	"\n"
	"usage: make-checkpoint SHAPE DIR [--seed N] [--shards N] [--recipe uniform|scaled]\n"
	"\n"
	"SHAPE   tiny (4 layers of 64, half a megabyte: for a machine without a GPU), 0.6B, 1.7B, 4B or 8B\n"
	"DIR     must not exist; gets config.json and model.safetensors, or shards and their index\n"
	"--seed  default 1; the same seed gives the same bytes\n"
	"--shards  default: one for each 4 GB\n"
	"--recipe  how deviations are chosen; default: uniform for tiny, scaled for the rest\n"
	"\n"
	"Such a model says nothing sensible. It is as large, as fast and as exact to compute as a trained one.\n"
	"\n"
	"exit    0 written; 2 usage, or DIR is there; 111 a system call failed\n";

static const struct shape {
	const char *name;
	struct qwen3_config c;
	int scaled;       /* by default */
	double deviation; /* of the weights of projections, where they are uniform */
} SHAPES[] = {
	{"tiny", {64, 4, 4, 2, 32, 192, 512, 4096, 1, 1e6, 1e-6}, 0, 0.12},
	{"0.6B", {1024, 28, 16, 8, 128, 3072, 151936, 40960, 1, 1e6, 1e-6}, 1, 0.02},
	{"1.7B", {2048, 28, 16, 8, 128, 6144, 151936, 40960, 1, 1e6, 1e-6}, 1, 0.02},
	{"4B", {2560, 36, 32, 8, 128, 9728, 151936, 40960, 1, 1e6, 1e-6}, 1, 0.02},
	{"8B", {4096, 36, 32, 8, 128, 12288, 151936, 40960, 0, 1e6, 1e-6}, 1, 0.02},
};

static const double EMBEDDING = 0.25, QK_GAIN = 1.5, LOGITS = 4, ADDED = 2;
static const double SHARD = 4e9; /* bytes */

enum { TENSORS = 2000, CHUNK = 1 << 20, TABLES = 5, SHARDS = 64, THREADS = 64 };

struct tensor {
	char name[QWEN3_NAME];
	int64_t shape[2];
	int rank, shard;
	uint64_t bytes, at;        /* where it begins in its file */
	uint64_t key;              /* of its stream */
	const uint16_t *table;     /* normal, by 16 bits; NULL: constant */
	double constant;
	int signs;                 /* the constant with random signs */
};

static struct tensor tensor[TENSORS];
static int tensors;

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct tensor *)a)->name, ((const struct tensor *)b)->name);
}

/* `shards` 0: as many as are usual for the size. */
static uint64_t list(const struct qwen3_config *c, int *shards)
{
	uint64_t total = 0, at = 0;
	for (struct tensor *t = tensor; qwen3_tensor(c, tensors, t->name, t->shape, &t->rank); tensors++, t++) {
		t->bytes = 2 * (uint64_t)t->shape[0] * (t->rank == 2 ? (uint64_t)t->shape[1] : 1);
		total += t->bytes;
	}
	if (*shards == 0)
		*shards = (int)((double)total / SHARD) + 1;
	qsort(tensor, (size_t)tensors, sizeof *tensor, by_name); /* as the format's writer does */
	for (int i = 0; i < tensors; i++) {
		tensor[i].shard = (int)((double)at / (double)total * *shards);
		at += tensor[i].bytes;
	}
	return total;
}

/* ---- weights ---- */

static struct {
	double deviation;
	uint16_t normal[65536];
} table[TABLES];
static int tables;

static const uint16_t *table_of(double deviation)
{
	for (int i = 0; i < tables; i++)
		if (table[i].deviation == deviation)
			return table[i].normal;
	if (tables == TABLES)
		die(EX_HARNESS, "more than %d deviations", TABLES);
	table[tables].deviation = deviation;
	for (int i = 0; i < 65536; i++)
		table[tables].normal[i] = dtype_to_bf16((float)(deviation * stats_normal_quantile((i + 0.5) / 65536)));
	return table[tables++].normal;
}

/* What a row of weights of the middle of a block gives has about this deviation: a mixture of values, gated values. */
static const double MIXED = 0.4, GATED = 0.6;

static double deviation_of(const struct shape *s, int scaled, const char *name)
{
	const struct qwen3_config *c = &s->c;
	const double each = ADDED * EMBEDDING / sqrt(2.0 * c->layers); /* what one of the additions has */
	if (strstr(name, "embed") || strstr(name, "lm_head"))
		return EMBEDDING;
	if (!scaled)
		return s->deviation;
	if (strstr(name, "o_proj"))
		return each / (MIXED * sqrt((double)c->heads * c->head_dim));
	if (strstr(name, "down_proj"))
		return each / (GATED * sqrt((double)c->intermediate));
	return 1 / sqrt((double)c->hidden);
}

static void choose(const struct shape *s, int scaled, uint64_t seed)
{
	for (int i = 0; i < tensors; i++) {
		struct tensor *t = &tensor[i];
		uint8_t h[32];
		char *text = xasprintf("%llu:%s", (unsigned long long)seed, t->name);
		hash_bytes(text, strlen(text), h);
		free(text);
		for (int k = 0; k < 8; k++)
			t->key = t->key << 8 | h[k];
		t->constant = strstr(t->name, "q_norm") || strstr(t->name, "k_norm") ? QK_GAIN : 1;
		if (t->rank == 2)
			t->table = table_of(deviation_of(s, scaled, t->name));
		else if (scaled && strcmp(t->name, "model.norm.weight") == 0) {
			t->constant = LOGITS / (EMBEDDING * sqrt((double)s->c.hidden));
			t->signs = 1;
		}
	}
}

/* splitmix64 (Steele, Lea, Flood 2014): any word of the stream from its number. */
static uint64_t word(uint64_t key, uint64_t i)
{
	uint64_t z = key + (i + 1) * UINT64_C(0x9E3779B97F4A7C15);
	z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
	return z ^ (z >> 31);
}

/* Elements [at, at + k) of a tensor; at is a multiple of 4. */
static void fill(const struct tensor *t, uint64_t at, size_t k, uint16_t *out)
{
	const uint16_t plain = dtype_to_bf16((float)t->constant), minus = dtype_to_bf16((float)-t->constant);
	for (size_t i = 0; i < k; i += 4) {
		uint64_t r = word(t->key, (at + i) / 4);
		for (size_t j = i; j < i + 4 && j < k; j++, r >>= 16)
			out[j] = t->table ? t->table[r & 0xffff] : t->signs && (r & 1) ? minus : plain;
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

struct file {
	char *path;
	int fd;
};

static void write_at(const struct file *f, const void *data, size_t n, uint64_t at)
{
	for (const char *p = data; n > 0;) {
		ssize_t k = pwrite(f->fd, p, n, (off_t)at);
		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0)
			die(EX_SYS, "cannot write '%s': %s", f->path, strerror(errno));
		p += k;
		at += (uint64_t)k;
		n -= (size_t)k;
	}
}

/* The header; says of each tensor where its data will lie. */
static struct file begin_shard(const char *dir, int shard, int shards)
{
	char name[64];
	struct jsonw w = {0};
	uint64_t at = 0;
	jw_obj(&w, NULL);
	jw_obj(&w, "__metadata__");
	jw_str(&w, "format", "pt");
	jw_end(&w);
	for (int i = 0; i < tensors; i++) {
		struct tensor *t = &tensor[i];
		if (t->shard != shard)
			continue;
		t->at = at;
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
	struct file f = {.path = xasprintf("%s/%s", dir, name)};
	f.fd = open(f.path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (f.fd < 0)
		die(EX_SYS, "cannot make '%s': %s", f.path, strerror(errno));
	uint8_t length[8];
	for (int i = 0; i < 8; i++)
		length[i] = (uint8_t)(w.out.len >> (8 * i));
	write_at(&f, length, 8, 0);
	write_at(&f, w.out.data, w.out.len, 8);
	for (int i = 0; i < tensors; i++)
		if (tensor[i].shard == shard)
			tensor[i].at += 8 + w.out.len;
	jw_free(&w);
	return f;
}

/* ---- data, by threads: piece i of all is always the same ---- */

static struct {
	struct file file[SHARDS];
	atomic_ullong next;
} job;

static uint64_t pieces_of(const struct tensor *t)
{
	return (t->bytes / 2 + CHUNK - 1) / CHUNK;
}

static void *work(void *unused)
{
	uint16_t *chunk = xcalloc(CHUNK, sizeof *chunk);
	uint64_t first = 0; /* of tensor i */
	int i = 0;
	for (;;) {
		const uint64_t piece = atomic_fetch_add(&job.next, 1);
		while (i < tensors && piece >= first + pieces_of(&tensor[i]))
			first += pieces_of(&tensor[i++]);
		if (i == tensors)
			break;
		const struct tensor *t = &tensor[i];
		const uint64_t at = (piece - first) * CHUNK, n = t->bytes / 2 - at;
		const size_t k = n < CHUNK ? (size_t)n : CHUNK;
		fill(t, at, k, chunk);
		write_at(&job.file[t->shard], chunk, 2 * k, t->at + 2 * at);
	}
	free(chunk);
	return unused;
}

static void write_shards(const char *dir, int shards)
{
	pthread_t thread[THREADS];
	const long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	int started = 0;
	for (int i = 0; i < shards; i++)
		job.file[i] = begin_shard(dir, i, shards);
	while (started < THREADS && started + 1 < cpus && pthread_create(&thread[started], NULL, work, NULL) == 0)
		started++;
	work(NULL);
	for (int i = 0; i < started; i++)
		pthread_join(thread[i], NULL);
	for (int i = 0; i < shards; i++) {
		if (fsync(job.file[i].fd) != 0 || close(job.file[i].fd) != 0)
			die(EX_SYS, "cannot write '%s': %s", job.file[i].path, strerror(errno));
		free(job.file[i].path);
	}
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

static void write_config(const char *dir, const struct shape *s, int scaled, uint64_t seed)
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
	if (scaled)
		jw_str(&w, "recipe", "scaled");
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

static int recipe(const char *text)
{
	const int scaled = text && strcmp(text, "scaled") == 0;
	if (!scaled && !(text && strcmp(text, "uniform") == 0))
		die(EX_BADUSE, "--recipe is uniform or scaled");
	return scaled;
}

int main(int argc, char **argv)
{
	const struct shape *s = NULL;
	const char *dir = NULL, *shape = NULL;
	uint64_t seed = 1;
	int shards = 0, scaled = -1;
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
			shards = (int)number(argv[++i], "--shards", SHARDS);
		else if (!strcmp(argv[i], "--recipe"))
			scaled = recipe(argv[++i]);
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
		die(EX_BADUSE, "usage: make-checkpoint tiny|0.6B|1.7B|4B|8B DIR [--seed N] [--shards N] [--recipe R]");
	if (file_exists(dir))
		die(EX_BADUSE, "'%s' exists; choose another name", dir);
	char *tmp = xasprintf("%s.tmp.%ld", dir, (long)getpid());
	if (dir_make(tmp, &e))
		die_err(&e);
	if (scaled < 0)
		scaled = s->scaled;
	uint64_t total = list(&s->c, &shards);
	choose(s, scaled, seed);
	write_shards(tmp, shards);
	if (shards > 1)
		write_index(tmp, shards, total);
	write_config(tmp, s, scaled, seed);
	if (rename(tmp, dir) != 0)
		die(EX_SYS, "cannot name '%s': %s", dir, strerror(errno));
	printf("%s: Qwen3 %s, %llu parameters, %llu bytes of weights, seed %llu\n", dir, s->name,
	       (unsigned long long)qwen3_parameters(&s->c), (unsigned long long)total, (unsigned long long)seed);
	free(tmp);
	return 0;
}
