/*
 * logits.c - what the reference says: logits of every position of a token sequence, for golden.py and gpu.py.
 *
 *   logits MODEL_DIR IDS OUT fp32|bf16 [gpu]     IDS: int32, OUT: float32 [tokens, vocab], both little-endian
 *
 * SPDX-License-Identifier: MIT
 */
#include "buf.h"
#include "file.h"
#include "qwen3_gpu.h"
#include "qwen3_ref.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int on_processor(const struct qwen3 *m, enum qwen3_policy p, const int32_t *ids, int n, float *out, struct err *e)
{
	struct qwen3_seq *s;
	if (qwen3_seq_open(&s, m, p, QWEN3_RIGHT, n, e))
		return -1;
	int rc = qwen3_seq_append(s, ids, n, n, out, e);
	qwen3_seq_close(s);
	return rc;
}

static int on_gpu(const struct qwen3 *m, enum qwen3_policy p, const int32_t *ids, int n, float *out, struct err *e)
{
	struct qwen3_gpu *g;
	if (qwen3_gpu_open(&g, m, e))
		return -1;
	int rc = qwen3_gpu_logits(g, p, QWEN3_RIGHT, ids, n, out, e);
	qwen3_gpu_close(g);
	return rc;
}

int main(int argc, char **argv)
{
	struct qwen3 m;
	struct buf ids = BUF_INIT;
	struct err e;
	prog_name(argv[0]);
	if (argc != 5 && !(argc == 6 && strcmp(argv[5], "gpu") == 0))
		die(EX_BADUSE, "usage: logits MODEL_DIR IDS OUT fp32|bf16 [gpu]");
	if (qwen3_open(&m, argv[1], &e) || file_read(argv[2], 1 << 20, &ids, &e))
		die_err(&e);
	const enum qwen3_policy p = strcmp(argv[4], "bf16") == 0 ? QWEN3_BF16 : QWEN3_FP32;
	const int n = (int)(ids.len / 4);
	const int32_t *id = (const int32_t *)(const void *)ids.data;
	float *out = xcalloc((size_t)n * (size_t)m.c.vocab, sizeof *out);
	FILE *f = fopen(argv[3], "wb");
	if ((argc == 6 ? on_gpu : on_processor)(&m, p, id, n, out, &e))
		die_err(&e);
	if (!f || fwrite(out, sizeof *out * (size_t)m.c.vocab, (size_t)n, f) != (size_t)n || fclose(f))
		die(EX_SYS, "cannot write '%s'", argv[3]);
	qwen3_close(&m);
	buf_free(&ids);
	free(out);
	return 0;
}
