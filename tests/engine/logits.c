/*
 * logits.c - what the reference says: logits of every position of a token sequence, for golden.py.
 *
 *   logits MODEL_DIR IDS OUT fp32|bf16     IDS: int32, OUT: float32 [tokens, vocab], both little-endian
 *
 * SPDX-License-Identifier: MIT
 */
#include "buf.h"
#include "file.h"
#include "qwen3_ref.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
	struct qwen3 m;
	struct qwen3_seq *s;
	struct buf ids = BUF_INIT;
	struct err e;
	prog_name(argv[0]);
	if (argc != 5)
		die(EX_BADUSE, "usage: logits MODEL_DIR IDS OUT fp32|bf16");
	if (qwen3_open(&m, argv[1], &e) || file_read(argv[2], 1 << 20, &ids, &e))
		die_err(&e);
	int n = (int)(ids.len / 4);
	float *out = xcalloc((size_t)n * (size_t)m.c.vocab, sizeof *out);
	if (qwen3_seq_open(&s, &m, strcmp(argv[4], "bf16") == 0 ? QWEN3_BF16 : QWEN3_FP32, QWEN3_RIGHT, n, &e) ||
	    qwen3_seq_append(s, (const int32_t *)(const void *)ids.data, n, n, out, &e) ||
	    file_write(argv[3], out, (size_t)n * (size_t)m.c.vocab * sizeof *out, 0666, &e))
		die_err(&e);
	qwen3_seq_close(s);
	qwen3_close(&m);
	buf_free(&ids);
	free(out);
	return 0;
}
