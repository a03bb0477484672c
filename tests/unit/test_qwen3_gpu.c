/*
 * test_qwen3_gpu.c - tests of qwen3_gpu and engine_replay_gpu on the fake driver and the fake cuBLAS (tests/fake/cuda):
 * the same logits, answers, regrets and gates as the reference on the processor.
 *
 * Needs NVRTC, which makes the cubins that the fake driver reads; skipped without.
 *
 * SPDX-License-Identifier: MIT
 */
#include "../../stages/lib/box_call.h"
#include "../../stages/lib/buf.h"
#include "../../stages/lib/engine_model.h"
#include "../../stages/lib/engine_mutant.h"
#include "../../stages/lib/engine_replay.h"
#include "../../stages/lib/file.h"
#include "../../stages/lib/gpu_source.h"
#include "../../stages/lib/qwen3_gpu_part.h"
#include "../../stages/lib/toolkit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dlfcn.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LEN = 41 };

static struct engine_model cpu, gpu;
static const char *why_not;

/* The fake card's scheduler has fixed addresses, which a sanitizer keeps for itself: no kernel runs. */
static void need(void)
{
#ifdef __SANITIZE_ADDRESS__
	why_not = "no kernel runs on the fake card under a sanitizer";
#endif
	if (why_not) {
		print_message("skipped: %s\n", why_not);
		skip();
	}
}

static int library(const char *dir, const char *name)
{
	char path[PATH_MAX];
	snprintf(path, sizeof path, "%.4000s/fake/cuda/%s", dir, name);
	return dlopen(path, RTLD_NOW) != NULL; /* found by its name from now on */
}

static int setup(void **state)
{
	(void)state;
	char self[PATH_MAX];
	static struct toolkit found;
	struct err e = {0};
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
	if (n < 0)
		return -1;
	self[n] = 0;
	*strrchr(self, '/') = 0;
	if (!library(self, "libcuda.so.1") || !library(self, "libcublas.so.13"))
		why_not = "no fake driver was built";
	else if (toolkit_find(&found, &e) < 0)
		why_not = "no NVRTC on this machine";
	if (why_not)
		return 0;
	if (engine_model_open(&cpu, NULL, "tiny", 1, NULL, &e) || engine_model_open(&gpu, NULL, "tiny", 1, NULL, &e) ||
	    engine_model_gpu(&gpu, NULL, &e)) {
		print_error("%s\n", e.text);
		return -1;
	}
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	if (!why_not) {
		engine_model_close(&gpu);
		engine_model_close(&cpu);
	}
	return 0;
}

static void draw(int32_t *ids, int n)
{
	for (int i = 0; i < n; i++)
		ids[i] = (int32_t)((uint32_t)i * 2654435761u >> 8) % cpu.model.c.vocab;
}

static double apart(const float *a, const float *b, size_t n)
{
	double most = 0;
	for (size_t i = 0; i < n; i++)
		most = fmax(most, fabs((double)a[i] - b[i]));
	return most;
}

/* ---- logits ---- */

static float *with_fault(enum qwen3_policy p, enum qwen3_fault f, const int32_t *ids, int n)
{
	struct qwen3_seq *s;
	struct err e;
	float *x = xcalloc((size_t)n * (size_t)cpu.model.c.vocab, sizeof *x);
	assert_int_equal(qwen3_seq_open(&s, &cpu.model, p, f, n, &e), 0);
	assert_int_equal(qwen3_seq_append(s, ids, n, n, x, &e), 0);
	qwen3_seq_close(s);
	return x;
}

static float *on_processor(enum qwen3_policy p, const int32_t *ids, int n)
{
	return with_fault(p, QWEN3_RIGHT, ids, n);
}

static void logits(void **state)
{
	(void)state;
	need();
	int32_t ids[LEN];
	struct err e;
	const size_t vocab = (size_t)cpu.model.c.vocab;
	float *x = xcalloc(LEN * vocab, sizeof *x);
	draw(ids, LEN);
	const struct {
		enum qwen3_policy p;
		double most; /* rounding to bfloat16 turns a last bit of a sum into 2^-8 of the figure */
	} T[] = {{QWEN3_FP32, 1e-4}, {QWEN3_BF16, 0.1}};
	for (size_t i = 0; i < sizeof T / sizeof *T; i++) {
		float *y = on_processor(T[i].p, ids, LEN);
		assert_int_equal(qwen3_gpu_logits(gpu.gpu, T[i].p, QWEN3_RIGHT, ids, LEN, x, &e), 0);
		const double d = apart(x, y, LEN * vocab);
		print_message("policy %d: %.2g apart\n", (int)T[i].p, d);
		assert_true(d < T[i].most);
		free(y);
	}
	free(x);
}

/* Chunks of positions and steps of the cache give what one pass gives. */
static void chunks(void **state)
{
	(void)state;
	need();
	enum { BATCH = 2 };
	int32_t ids[BATCH * LEN], some[BATCH * LEN];
	struct qwen3_pass p;
	struct err e;
	const size_t vocab = (size_t)cpu.model.c.vocab;
	const int cuts[] = {17, 1, 1, 22}; /* 41 */
	float *x = xcalloc(BATCH * LEN * vocab, sizeof *x);
	draw(ids, BATCH * LEN);
	assert_int_equal(qwen3_pass_open(&p, gpu.gpu, QWEN3_FP32, QWEN3_RIGHT, BATCH, LEN, &e), 0);
	assert_int_equal(p.batch, BATCH);
	p.rows_of_logits = 5;
	p.scores = (size_t)cpu.model.c.heads * LEN * LEN; /* of one sequence */
	for (int c = 0, at = 0; c < 4; at += cuts[c++]) {
		for (int b = 0; b < BATCH; b++)
			memcpy(some + b * cuts[c], ids + b * LEN + at, (size_t)cuts[c] * sizeof *ids);
		assert_int_equal(qwen3_pass_layers(&p, some, at, cuts[c], &e), 0);
		assert_int_equal(qwen3_pass_head(&p, cuts[c], cuts[c], NULL, NULL, x, &e), 0);
		for (int b = 0; b < BATCH; b++) {
			float *y = on_processor(QWEN3_FP32, ids + b * LEN, LEN);
			assert_true(apart(x + (size_t)(b * cuts[c]) * vocab, y + (size_t)at * vocab,
					  (size_t)cuts[c] * vocab) < 1e-4);
			free(y);
		}
	}
	qwen3_pass_close(&p);
	free(x);
}

/* Each fault is the processor's: the prompt at once, and then by steps. */
static void faults(void **state)
{
	(void)state;
	need();
	enum { PROMPT = 70 };
	int32_t ids[PROMPT];
	struct err e;
	const size_t n = PROMPT * (size_t)cpu.model.c.vocab;
	float *x = xcalloc(n, sizeof *x), *right;
	draw(ids, PROMPT);
	right = on_processor(QWEN3_FP32, ids, PROMPT);
	for (int f = QWEN3_RIGHT + 1; f < QWEN3_FAULTS; f++) {
		if (f == QWEN3_VOCAB)
			continue; /* answers alone */
		float *y = with_fault(QWEN3_FP32, (enum qwen3_fault)f, ids, PROMPT);
		assert_int_equal(qwen3_gpu_logits(gpu.gpu, QWEN3_FP32, (enum qwen3_fault)f, ids, PROMPT, x, &e), 0);
		print_message("%-12s %.2g apart, %.2g from right\n", qwen3_fault_name((enum qwen3_fault)f), apart(x, y, n),
			      apart(x, right, n));
		assert_true(apart(x, y, n) < 2e-4);
		assert_true(apart(x, right, n) > 0.05);
		free(y);
	}
	free(x);
	free(right);
}

static void wrong_answers(void **state)
{
	(void)state;
	need();
	enum { BATCH = 2, PROMPT = 66, STEPS = 4 };
	int32_t ids[BATCH * PROMPT], out[2][BATCH * STEPS];
	struct err e;
	draw(ids, BATCH * PROMPT);
	for (const struct engine_mutant *x = ENGINE_MUTANTS; x->name; x++) {
		struct engine_asked a[2] = {{BATCH, PROMPT, STEPS, ids, out[0]}, {BATCH, PROMPT, STEPS, ids, out[1]}};
		assert_int_equal(engine_mutant_answer(x, &cpu, &a[0], &a[0], 1, &e), 0);
		assert_int_equal(engine_mutant_answer(x, &gpu, &a[1], &a[1], 1, &e), 0);
		int same = 0;
		for (int i = 0; i < BATCH * STEPS; i++)
			same += out[0][i] == out[1][i];
		print_message("%-12s %d of %d ids the same\n", x->name, same, BATCH * STEPS);
		assert_in_range(same, BATCH * STEPS - 2, BATCH * STEPS); /* a near tie may go the other way */
		for (int i = 0; i < BATCH * STEPS && x->fault == QWEN3_VOCAB; i++)
			assert_true(out[1][i] < cpu.model.c.vocab / 2);
	}
}

/* The tiny checkpoint with a head of its own: the embedding, one row on. */
static void untie(const char *dir)
{
	const size_t embed = (size_t)cpu.model.c.vocab * (size_t)cpu.model.c.hidden * 2, row = (size_t)cpu.model.c.hidden * 2;
	struct buf file = BUF_INIT, config = BUF_INIT, out = BUF_INIT;
	char path[PATH_MAX + 32], *tie;
	uint64_t n;
	struct err e;
	snprintf(path, sizeof path, "%s/model.safetensors", cpu.dir);
	assert_int_equal(file_read(path, 1 << 24, &file, &e), 0);
	snprintf(path, sizeof path, "%s/config.json", cpu.dir);
	assert_int_equal(file_read(path, 1 << 20, &config, &e), 0);
	memcpy(&n, file.data, sizeof n);
	size_t end = 8 + (size_t)n, data = file.len - end;
	while (file.data[end - 1] != '}')
		end--;
	buf_add(&out, file.data, end - 1);
	buf_addf(&out, ",\"lm_head.weight\":{\"dtype\":\"BF16\",\"shape\":[%d,%d],\"data_offsets\":[%zu,%zu]}}", cpu.model.c.vocab,
		 cpu.model.c.hidden, data, data + embed);
	while (out.len % 8)
		buf_addc(&out, ' ');
	n = out.len - 8;
	memcpy(out.data, &n, sizeof n);
	buf_add(&out, file.data + file.len - data, data);
	buf_add(&out, (const char *)cpu.model.embed + row, embed - row);
	buf_add(&out, cpu.model.embed, row);
	tie = strstr(buf_str(&config), "\"tie_word_embeddings\"");
	assert_non_null(tie);
	memcpy(tie, "\"not", 4); /* absent: untied */
	assert_int_equal(dir_make(dir, &e), 0);
	snprintf(path, sizeof path, "%s/config.json", dir);
	assert_int_equal(file_write(path, config.data, config.len, 0666, &e), 0);
	snprintf(path, sizeof path, "%s/model.safetensors", dir);
	assert_int_equal(file_write(path, out.data, out.len, 0666, &e), 0);
	buf_free(&file), buf_free(&config), buf_free(&out);
}

static void untied(void **state)
{
	(void)state;
	need();
	char dir[] = "/tmp/ts-untied-XXXXXX", path[64];
	int32_t ids[5];
	struct qwen3 m;
	struct qwen3_gpu *g;
	struct err e;
	const size_t vocab = (size_t)cpu.model.c.vocab;
	float *x = xcalloc(5 * vocab, sizeof *x), *y = on_processor(QWEN3_FP32, (draw(ids, 5), ids), 5);
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof path, "%s/m", dir);
	untie(path);
	if (qwen3_open(&m, path, &e) || qwen3_gpu_open(&g, &m, &e))
		fail_msg("%s", e.text);
	assert_false(m.c.tied);
	assert_int_equal(qwen3_gpu_logits(g, QWEN3_FP32, QWEN3_RIGHT, ids, 5, x, &e), 0);
	for (size_t t = 0; t < 5; t++) /* the same logits, one id down */
		assert_true(apart(x + t * vocab, y + t * vocab + 1, vocab - 1) < 1e-4);
	qwen3_gpu_close(g);
	qwen3_close(&m);
	free(x);
	free(y);
	assert_int_equal(dir_remove(dir, &e), 0);
}

/* ---- what is said of a place ---- */

static void said(void **state)
{
	(void)state;
	need();
	enum { ROWS = 8, VOCAB = 1500 };
	static float x[ROWS][VOCAB];
	const int32_t token[ROWS] = {3, 1499, 7, -1, 0, 5, 5, 2};
	struct engine_said got[ROWS], want;
	struct qwen3_pass p;
	struct err e;
	int vocab = VOCAB, limit = VOCAB;
	double least = ENGINE_MARGIN_LEAST;
	for (int r = 0; r < ROWS; r++)
		for (int i = 0; i < VOCAB; i++)
			x[r][i] = (float)((uint32_t)(r * VOCAB + i) * 2654435761u >> 8) / 1e6f;
	x[1][900] = x[1][1200] = 50;  /* a tie: the lowest id */
	x[2][1400] = NAN;
	x[3][10] = INFINITY;
	x[4][0] = -INFINITY;          /* never said, and asked for */
	for (int i = 0; i < VOCAB; i++)
		x[5][i] = -INFINITY;
	x[6][5] = 30;
	x[6][6] = 29.75f;             /* just near */
	x[6][7] = 29.7499f;
	x[7][2] = -NAN;
	assert_int_equal(qwen3_pass_open(&p, gpu.gpu, QWEN3_FP32, QWEN3_RIGHT, 8, 64, &e), 0);
	assert_int_equal(cu.MemcpyHtoD(p.x, x, sizeof x), 0);
	assert_int_equal(cu.MemcpyHtoD(p.token, token, sizeof token), 0);
	void *args[] = {&p.said, &p.x, &p.token, &vocab, &limit, &least};
	const CUlaunch c = {.grid = {ROWS, 1, 1}, .block = {256, 1, 1}, .stream = p.g->stream};
	assert_int_equal(cu.LaunchKernelEx(&c, p.g->kernel[K_SAID], args, NULL), 0);
	assert_int_equal(cu.StreamSynchronize(p.g->stream), 0);
	assert_int_equal(cu.MemcpyDtoH(got, p.said, sizeof got), 0);
	for (int r = 0; r < ROWS; r++) {
		engine_said_of(x[r], VOCAB, token[r], &want);
		assert_int_equal(got[r].id, want.id);
		assert_int_equal(got[r].near, want.near);
		assert_true(got[r].best == want.best && got[r].own == want.own);
	}
	assert_int_equal(got[1].id, 900);
	assert_int_equal(got[2].id, -1);
	assert_int_equal(got[6].near, 2);
	qwen3_pass_close(&p);
}

/* ---- the three calls of engine_replay ---- */

static struct engine_asked asked(int batch, int prompt, int steps)
{
	struct engine_asked a = {.batch = batch, .prompt = prompt, .steps = steps};
	a.ids = xcalloc((size_t)(batch * prompt), sizeof *a.ids);
	a.out = xcalloc((size_t)(batch * steps), sizeof *a.out);
	engine_replay_prompts((const uint8_t[32]){7}, "gpu", cpu.model.c.vocab, &a);
	draw(a.out, batch * steps); /* nobody's answer: regrets of every size */
	return a;
}

static void same(const struct engine_asked *a, int n)
{
	struct engine_regrets r[2] = {{0}, {0}};
	struct err e;
	assert_int_equal(engine_replay(&cpu, a, n, &r[0], &e), 0);
	assert_int_equal(engine_replay(&gpu, a, n, &r[1], &e), 0);
	assert_int_equal(r[0].n, r[1].n);
	for (size_t i = 0; i < r[0].n; i++)
		assert_true(fabs(r[0].regret[i] - r[1].regret[i]) < 2e-4);
	assert_int_equal(r[0].argmax, r[1].argmax);
	assert_int_equal(r[0].distinct, r[1].distinct);
	assert_true(fabs(r[0].near - r[1].near) < 0.01);
	engine_regrets_free(&r[0]);
	engine_regrets_free(&r[1]);
}

static void calls(void **state)
{
	(void)state;
	need();
	struct engine_asked a[2] = {asked(3, 20, 16), asked(1, 1, 18)};
	struct engine_honest h[2];
	struct err e;
	int32_t best[2];
	same(a, 2);
	assert_int_equal(engine_best(&cpu, &a[0], 2, 5, &best[0], &e), 0);
	assert_int_equal(engine_best(&gpu, &a[0], 2, 5, &best[1], &e), 0);
	assert_int_equal(best[0], best[1]);
	assert_int_equal(engine_honest(&cpu, a, 2, &h[0], &e), 0);
	assert_int_equal(engine_honest(&gpu, a, 2, &h[1], &e), 0);
	assert_int_equal(h[1].own.tokens, 66);
	assert_true(fabs(h[0].own.mean - h[1].own.mean) < 1e-5);
	assert_true(h[1].own.argmax_rate > 0.98);
	assert_true(h[1].rounded.worst > 0 || h[0].rounded.worst == 0);
	assert_true(fabs(h[0].rounded.mean - h[1].rounded.mean) < 0.005);
	assert_true(fabs(h[0].gates.margin - h[1].gates.margin) < 0.25);
	a[0].out[7] = cpu.model.c.vocab;
	struct engine_regrets r = {0};
	assert_int_equal(engine_replay(&gpu, a, 2, &r, &e), -1);
	assert_int_equal(e.code, EX_BADINPUT);
	engine_regrets_free(&r);
	for (int i = 0; i < 2; i++) {
		free(a[i].ids);
		free(a[i].out);
	}
}

/* What does not fit is cut into groups of sequences; what cannot be cut is refused in words. */
static void memory(void **state)
{
	(void)state;
	need();
	struct engine_asked a = asked(5, 24, 12);
	struct engine_regrets r = {0};
	struct err e;
	struct qwen3_pass p;
	setenv("FAKE_CUDA_FREE", "2500000", 1);
	assert_int_equal(qwen3_pass_open(&p, gpu.gpu, QWEN3_FP32, QWEN3_RIGHT, 5, 35, &e), 0);
	assert_in_range(p.batch, 1, 4);
	qwen3_pass_close(&p);
	same(&a, 1);
	setenv("FAKE_CUDA_FREE", "600000", 1);
	assert_int_equal(engine_replay(&gpu, &a, 1, &r, &e), -1);
	assert_int_equal(e.code, EX_AGAIN);
	assert_non_null(strstr(e.text, "MiB of GPU memory for a sequence of 35 tokens"));
	unsetenv("FAKE_CUDA_FREE");
	same(&a, 1);
	free(a.ids);
	free(a.out);
}

static void refusals(void **state)
{
	(void)state;
	need();
	struct qwen3_gpu *g;
	struct err e;
	int32_t ids[2] = {1, -1};
	float x[1];
	setenv("FAKE_CUBLAS_CREATE", "1", 1);
	assert_int_equal(qwen3_gpu_open(&g, &cpu.model, &e), -1);
	assert_null(g);
	assert_int_equal(e.code, EX_NOENV);
	assert_non_null(strstr(e.text, "cuBLAS does not start on this GPU: CUBLAS_STATUS_NOT_INITIALIZED"));
	setenv("FAKE_CUBLAS_CREATE", "3", 1);
	assert_int_equal(qwen3_gpu_open(&g, &cpu.model, &e), -1);
	assert_int_equal(e.code, EX_AGAIN);
	unsetenv("FAKE_CUBLAS_CREATE");
	assert_int_equal(qwen3_gpu_logits(gpu.gpu, QWEN3_FP32, QWEN3_RIGHT, ids, 2, x, &e), -1);
	assert_non_null(strstr(e.text, "token -1 is outside the vocabulary"));
	assert_int_equal(qwen3_gpu_logits(gpu.gpu, QWEN3_FP32, QWEN3_RIGHT, ids, cpu.model.c.max_positions + 1, x, &e), -1);
	assert_int_equal(e.code, EX_BADINPUT);
}

/* The kernels compile for every GPU that is supported. */
static void compiles(void **state)
{
	(void)state;
	need();
	static const char *const file[] = {"qwen3.cu"}, *const arch[] = {"sm_80", "sm_90a", "sm_120a"};
	for (size_t i = 0; i < sizeof arch / sizeof *arch; i++) {
		struct buf cubin = BUF_INIT;
		struct err e;
		if (gpu_source_build(file, 1, arch[i], &cubin, &e))
			fail_msg("%s: %s", arch[i], e.text);
		assert_true(cubin.len > 4096);
		buf_free(&cubin);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(logits), cmocka_unit_test(chunks), cmocka_unit_test(untied), cmocka_unit_test(faults), cmocka_unit_test(wrong_answers),   cmocka_unit_test(said),     cmocka_unit_test(calls),
		cmocka_unit_test(memory), cmocka_unit_test(refusals), cmocka_unit_test(compiles),
	};
	return cmocka_run_group_tests_name("qwen3_gpu", tests, setup, teardown);
}
