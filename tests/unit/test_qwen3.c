/*
 * test_qwen3.c - tests of safetensors, qwen3 and qwen3_ref: what is read, what is refused, and that the
 * reference agrees with itself and with nothing that is wrong.
 *
 * SPDX-License-Identifier: MIT
 */
#include "buf.h"
#include "file.h"
#include "qwen3_ref.h"
#include "spawn.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char work[] = "/tmp/ts-qwen3.XXXXXX";
static struct qwen3 model;

/* ---- headers ---- */

static int parse(const char *text, uint64_t data, struct safetensors *s, struct err *e)
{
	*s = (struct safetensors){0};
	*e = (struct err){0};
	return safetensors_parse(s, text, strlen(text), data, 0, "h", e);
}

static void header(void **state)
{
	struct safetensors s;
	struct err e;
	(void)state;
	assert_int_equal(parse("{\"__metadata__\":{\"format\":\"pt\"},"
			       "\"b\":{\"dtype\":\"BF16\",\"shape\":[2,3],\"data_offsets\":[4,16]},"
			       "\"a\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]}}   ",
			       16, &s, &e), 0);
	assert_int_equal(s.n, 2);
	assert_string_equal(s.t[1].name, "b");
	assert_int_equal(s.t[1].rank, 2);
	assert_int_equal(s.t[1].bytes, 12);
	safetensors_close(&s);
}

static void header_refused(void **state)
{
#define T(name, dtype, shape, at) "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" at "}"
	static const struct {
		const char *text;
		uint64_t data;
		const char *word;
	} BAD[] = {
		{"", 0, "empty"},
		{"[]", 0, "not an object"},
		{" {}", 0, "not an object"},
		{"{", 0, "not JSON"},
		{"{" T("a", "BF16", "[2]", "[0,4]") "} x", 4, "not JSON"},
		{"{" T("a", "BF16", "[2]", "[0,4]") "," T("a", "BF16", "[2]", "[4,8]") "}", 8, "duplicate key"},
		{"{" T("a", "Q4", "[2]", "[0,4]") "}", 4, "unknown dtype"},
		{"{" T("a", "BF16", "[2]", "[0,6]") "}", 6, "its shape needs 4"},
		{"{" T("a", "BF16", "[-2]", "[0,4]") "}", 4, "impossible shape"},
		{"{" T("a", "BF16", "[1.5]", "[0,3]") "}", 3, "impossible shape"},
		{"{" T("a", "BF16", "[9007199254740992,9007199254740992]", "[0,4]") "}", 4, "impossible shape"},
		{"{" T("a", "BF16", "[1,1,1,1,1,1,1,1,1]", "[0,2]") "}", 2, "dimensions"},
		{"{" T("a", "BF16", "[2]", "[4,0]") "}", 4, "impossible data_offsets"},
		{"{" T("a", "BF16", "[2]", "[0]") "}", 4, "impossible data_offsets"},
		{"{" T("a", "BF16", "[2]", "[2,6]") "}", 6, "hole"},
		{"{" T("a", "BF16", "[2]", "[0,4]") "," T("b", "BF16", "[2]", "[2,6]") "}", 6, "overlaps"},
		{"{" T("a", "BF16", "[2]", "[0,4]") "}", 3, "the file has 3"},
		{"{" T("a", "BF16", "[2]", "[0,4]") "}", 6, "the tensors fill 4 bytes"},
		{"{\"a\":{\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[0,4],\"x\":1}}", 4, "x"},
		{"{\"a\":7}", 4, "not an object"},
	};
	struct safetensors s;
	struct err e;
	(void)state;
	for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
		assert_int_equal(parse(BAD[i].text, BAD[i].data, &s, &e), -1);
		assert_int_equal(e.code, EX_BADINPUT);
		if (!strstr(e.text, BAD[i].word))
			fail_msg("%zu: '%s' does not say '%s'", i, e.text, BAD[i].word);
		safetensors_close(&s);
	}
}

/* ---- config ---- */

#define HEAD "{\"model_type\":\"qwen3\",\"hidden_size\":64,\"num_hidden_layers\":2,\"num_attention_heads\":4," \
	"\"num_key_value_heads\":2,\"head_dim\":32,\"intermediate_size\":192,\"vocab_size\":512," \
	"\"max_position_embeddings\":4096,\"rms_norm_eps\":1e-06"

static void config(void **state)
{
	static const char *const GOOD[] = {
		HEAD ",\"rope_theta\":1000000,\"torch_dtype\":\"bfloat16\",\"rope_scaling\":null,\"sliding_window\":null}",
		HEAD ",\"rope_parameters\":{\"rope_theta\":1000000.0,\"rope_type\":\"default\"},\"dtype\":\"bfloat16\","
		     "\"layer_types\":[\"full_attention\",\"full_attention\"],\"tie_word_embeddings\":true}",
	};
	static const struct {
		const char *text, *word;
	} BAD[] = {
		{HEAD ",\"torch_dtype\":\"bfloat16\"}", "rope_theta"},
		{HEAD ",\"rope_theta\":1e6,\"torch_dtype\":\"float16\"}", "torch_dtype"},
		{HEAD ",\"rope_theta\":1e6}", "dtype"},
		{HEAD ",\"rope_theta\":1e6,\"dtype\":\"bfloat16\",\"attention_bias\":true}", "attention_bias"},
		{HEAD ",\"rope_theta\":1e6,\"dtype\":\"bfloat16\",\"hidden_act\":\"gelu\"}", "hidden_act"},
		{HEAD ",\"rope_theta\":1e6,\"dtype\":\"bfloat16\",\"use_sliding_window\":true}", "sliding"},
		{HEAD ",\"rope_theta\":1e6,\"dtype\":\"bfloat16\",\"rope_scaling\":{\"type\":\"yarn\"}}", "type"},
		{HEAD ",\"rope_theta\":1e6,\"dtype\":\"bfloat16\",\"rope_parameters\":{\"rope_theta\":1e4}}", "differs"},
		{HEAD ",\"rope_theta\":1e6,\"dtype\":\"bfloat16\",\"layer_types\":[\"full_attention\"]}", "layer_types"},
		{HEAD ",\"rope_theta\":1e6,\"dtype\":\"bfloat16\",\"tie_word_embeddings\":1}", "tie_word"},
		{"{\"model_type\":\"llama\"}", "model_type"},
		{"{}", "model_type"},
		{"7", "model_type"},
	};
	struct qwen3_config c;
	struct err e;
	(void)state;
	for (size_t i = 0; i < sizeof GOOD / sizeof *GOOD; i++) {
		if (qwen3_config_parse(GOOD[i], strlen(GOOD[i]), "c", &c, &e))
			fail_msg("%s", e.text);
		assert_int_equal(c.tied, i == 1);
		assert_true(c.rope_theta == 1e6 && c.heads == 4 && c.eps == 1e-6);
	}
	for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
		assert_int_equal(qwen3_config_parse(BAD[i].text, strlen(BAD[i].text), "c", &c, &e), -1);
		if (!strstr(e.text, BAD[i].word))
			fail_msg("%zu: '%s' does not say '%s'", i, e.text, BAD[i].word);
	}
}

/* Published sizes: 2 x parameters is the total_size of the released index files. */
static void sizes(void **state)
{
	const struct qwen3_config b4 = {2560, 36, 32, 8, 128, 9728, 151936, 40960, 1, 1e6, 1e-6},
				  b8 = {4096, 36, 32, 8, 128, 12288, 151936, 40960, 0, 1e6, 1e-6};
	(void)state;
	assert_true(2 * qwen3_parameters(&b4) == UINT64_C(8044936192));
	assert_true(2 * qwen3_parameters(&b8) == UINT64_C(16381470720));
	assert_true(qwen3_step_bytes(&b4) == UINT64_C(8044936192));
	assert_true(qwen3_step_bytes(&b8) == UINT64_C(16381470720) - 2 * UINT64_C(151936) * 4096);
}

/* ---- a folder ---- */

static int make(const char *name, const char *option, const char *value)
{
	char program[256], dir[256];
	struct spawn_result r = {0};
	struct err e;
	snprintf(program, sizeof program, "%s/bin/make-checkpoint", getenv("BUILD") ? getenv("BUILD") : ".build");
	snprintf(dir, sizeof dir, "%s/%s", work, name);
	const char *const argv[] = {program, "tiny", dir, option, value, NULL};
	struct spawn_request q = {.argv = argv, .out = SPAWN_CAPTURE, .err = SPAWN_CAPTURE, .wall_s = 60};
	int rc = spawn_run(&q, &r, &e);
	if (rc == 0 && r.code != 0)
		fail_msg("make-checkpoint: %s", buf_str(&r.err));
	spawn_result_free(&r);
	return rc;
}

static void folders(void **state)
{
	char dir[256], index[512];
	struct qwen3 one;
	struct err e;
	(void)state;
	assert_int_equal(make("sharded", "--shards", "3"), 0);
	snprintf(dir, sizeof dir, "%s/sharded", work);
	if (qwen3_open(&one, dir, &e))
		fail_msg("%s", e.text);
	assert_int_equal(one.st.nmaps, 3);
	/* the same seed: the same weights, wherever they lie */
	assert_memory_equal(one.layer[1].down, model.layer[1].down, 64 * 192 * 2);
	assert_memory_equal(one.embed, model.embed, 512 * 64 * 2);
	qwen3_close(&one);
	snprintf(index, sizeof index, "%s/model-00002-of-00003.safetensors", dir);
	assert_int_equal(truncate(index, 4000), 0);
	assert_int_equal(qwen3_open(&one, dir, &e), -1);
	assert_non_null(strstr(e.text, "model-00002-of-00003"));
	assert_int_equal(unlink(index), 0);
	assert_int_equal(qwen3_open(&one, dir, &e), -1);
	assert_non_null(strstr(e.text, "no file"));
}

static double deviation(const uint16_t *w, size_t n)
{
	double sum = 0;
	for (size_t i = 0; i < n; i++)
		sum += pow((double)dtype_from_bf16(w[i]), 2);
	return sqrt(sum / (double)n);
}

/* The other recipe: deviations that follow the width, a last norm with random signs. */
static void recipes(void **state)
{
	char dir[256];
	struct qwen3 one;
	struct err e;
	int minus = 0;
	(void)state;
	assert_int_equal(make("scaled", "--recipe", "scaled"), 0);
	snprintf(dir, sizeof dir, "%s/scaled", work);
	if (qwen3_open(&one, dir, &e))
		fail_msg("%s", e.text);
	const double each = 2 * 0.25 / sqrt(8);
	assert_memory_equal(one.embed, model.embed, 512 * 64 * 2);
	assert_true(fabs(deviation(one.layer[0].q, 128 * 64) * 8 - 1) < 0.05);
	assert_true(fabs(deviation(one.layer[3].up, 192 * 64) * 8 - 1) < 0.05);
	assert_true(fabs(deviation(one.layer[1].o, 64 * 128) * 0.4 * sqrt(128) / each - 1) < 0.05);
	assert_true(fabs(deviation(one.layer[2].down, 64 * 192) * 0.6 * sqrt(192) / each - 1) < 0.05);
	assert_true(deviation(model.layer[2].down, 64 * 192) > 0.115);
	for (int i = 0; i < 64; i++) {
		assert_true(fabsf(dtype_from_bf16(one.norm[i])) == 2); /* 4 / (0.25 x 8) */
		minus += dtype_from_bf16(one.norm[i]) < 0;
	}
	assert_in_range(minus, 16, 48);
	assert_true(dtype_from_bf16(one.layer[0].input_norm[5]) == 1 && dtype_from_bf16(one.layer[0].q_norm[5]) == 1.5f);
	qwen3_close(&one);
}

/* ---- the reference ---- */

enum { PROMPT = 90, VOCAB = 512 };
static int32_t ids[PROMPT];

static float *run(enum qwen3_policy p, enum qwen3_fault f, int step)
{
	struct qwen3_seq *s;
	struct err e;
	float *out = xcalloc((size_t)PROMPT * VOCAB, sizeof *out);
	assert_int_equal(qwen3_seq_open(&s, &model, p, f, PROMPT, &e), 0);
	for (int at = 0; at < PROMPT; at += step) {
		int n = PROMPT - at < step ? PROMPT - at : step;
		assert_int_equal(qwen3_seq_append(s, ids + at, n, n, out + (size_t)at * VOCAB, &e), 0);
	}
	qwen3_seq_close(s);
	return out;
}

static float largest(const float *a, const float *b)
{
	float most = 0;
	for (size_t i = 0; i < (size_t)PROMPT * VOCAB; i++)
		most = fmaxf(most, fabsf(a[i] - b[i]));
	return most;
}

/* A prompt at once, token by token, and in odd pieces: the same sums in the same order. */
static void pieces(void **state)
{
	(void)state;
	float *whole = run(QWEN3_FP32, QWEN3_RIGHT, PROMPT), *each = run(QWEN3_FP32, QWEN3_RIGHT, 1),
	      *odd = run(QWEN3_FP32, QWEN3_RIGHT, 7);
	assert_true(largest(whole, each) == 0);
	assert_true(largest(whole, odd) == 0);
	free(whole), free(each), free(odd);
}

/* How far the token that b prefers lies below the best of a, worst and mean over all positions. */
static double regret(const float *a, const float *b, double *mean)
{
	double most = 0, sum = 0;
	for (int t = 0; t < PROMPT; t++) {
		const float *x = a + (size_t)t * VOCAB;
		double d = x[qwen3_argmax(x, VOCAB)] - x[qwen3_argmax(b + (size_t)t * VOCAB, VOCAB)];
		most = fmax(most, d);
		sum += d;
	}
	*mean = sum / PROMPT;
	return most;
}

static void faults(void **state)
{
	double mean, honest_mean;
	(void)state;
	float *truth = run(QWEN3_FP32, QWEN3_RIGHT, PROMPT), *bf16 = run(QWEN3_BF16, QWEN3_RIGHT, PROMPT);
	double honest = regret(truth, bf16, &honest_mean);
	assert_true(largest(truth, bf16) > 0);
	assert_true(honest <= 0.75);
	for (int f = QWEN3_RIGHT + 1; f < QWEN3_FAULTS; f++) {
		float *bad = run(QWEN3_FP32, (enum qwen3_fault)f, PROMPT);
		double worst = regret(truth, bad, &mean);
		print_message("%-12s worst %6.2f mean %7.4f\n", qwen3_fault_name((enum qwen3_fault)f), worst, mean);
		/* int8 is told by many tokens only; everything else by these ninety */
		assert_true(f == QWEN3_INT8 ? largest(truth, bad) > 0 : worst > fmax(2 * honest, 0.3));
		free(bad);
	}
	print_message("bf16         worst %6.2f mean %7.4f\n", honest, honest_mean);
	free(truth), free(bf16);
}

/* transformers' float32 logits of the first 16 tokens of golden.py's sequence on the tiny checkpoint. */
static void golden(void **state)
{
	enum { KEPT = 16 };
	struct buf b = BUF_INIT;
	struct qwen3_seq *s;
	struct err e;
	int32_t id[KEPT];
	float most = 0, *out = xcalloc((size_t)KEPT * VOCAB, sizeof *out);
	(void)state;
	assert_int_equal(file_read("tests/engine/golden-tiny.f32", 1 << 20, &b, &e), 0);
	assert_int_equal(b.len, (size_t)KEPT * VOCAB * sizeof *out);
	for (uint32_t i = 0; i < KEPT; i++)
		id[i] = (int32_t)((i * 2654435761u >> 8) % VOCAB);
	assert_int_equal(qwen3_seq_open(&s, &model, QWEN3_FP32, QWEN3_RIGHT, KEPT, &e), 0);
	assert_int_equal(qwen3_seq_append(s, id, KEPT, KEPT, out, &e), 0);
	for (size_t i = 0; i < (size_t)KEPT * VOCAB; i++) {
		float want;
		memcpy(&want, b.data + i * sizeof want, sizeof want);
		most = fmaxf(most, fabsf(out[i] - want));
	}
	assert_true(most > 0 && most < 1e-4f);
	qwen3_seq_close(s);
	buf_free(&b);
	free(out);
}

static void limits(void **state)
{
	struct qwen3_seq *s;
	struct err e;
	int32_t bad = VOCAB;
	float nan[4] = {0, NAN, 3, 1}, tie[4] = {0, 3, 3, 1};
	(void)state;
	assert_int_equal(qwen3_seq_open(&s, &model, QWEN3_FP32, QWEN3_RIGHT, 4097, &e), -1);
	assert_int_equal(qwen3_seq_open(&s, &model, QWEN3_FP32, QWEN3_RIGHT, 2, &e), 0);
	assert_int_equal(qwen3_seq_append(s, &bad, 1, 0, NULL, &e), -1);
	bad = -1;
	assert_int_equal(qwen3_seq_append(s, &bad, 1, 0, NULL, &e), -1);
	assert_int_equal(qwen3_seq_append(s, ids, 3, 0, NULL, &e), -1);
	assert_int_equal(qwen3_seq_append(s, ids, 2, 0, NULL, &e), 0);
	assert_int_equal(qwen3_seq_append(s, ids, 1, 0, NULL, &e), -1);
	qwen3_seq_close(s);
	assert_int_equal(qwen3_argmax(nan, 4), -1);
	assert_int_equal(qwen3_argmax(tie, 4), 1);
}

static int setup(void **state)
{
	char dir[256];
	struct err e;
	(void)state;
	if (!mkdtemp(work) || make("tiny", "--seed", "1"))
		return -1;
	for (int i = 0; i < PROMPT; i++)
		ids[i] = (int32_t)((unsigned)i * 2654435761u >> 23);
	snprintf(dir, sizeof dir, "%s/tiny", work);
	return qwen3_open(&model, dir, &e);
}

static int teardown(void **state)
{
	struct err e;
	(void)state;
	qwen3_close(&model);
	return dir_remove(work, &e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(header), cmocka_unit_test(header_refused), cmocka_unit_test(config),
		cmocka_unit_test(sizes), cmocka_unit_test(folders), cmocka_unit_test(recipes), cmocka_unit_test(pieces),
		cmocka_unit_test(faults), cmocka_unit_test(golden), cmocka_unit_test(limits),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
