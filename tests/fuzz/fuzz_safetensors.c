/*
 * fuzz_safetensors.c - any text as the header of a checkpoint, and as its config.json: what is accepted
 * covers the data without hole or overlap, and has dimensions that fit.
 *
 * The first two bytes are how much data there is.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fuzz.h"

#include "qwen3.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct safetensors s = {0};
	struct qwen3_config c;
	struct err e = {0};
	char name[QWEN3_NAME];
	int64_t shape[2];
	int rank;
	if (size < 2)
		return 0;
	const uint64_t bytes = (uint64_t)data[0] << 8 | data[1];
	const char *text = (const char *)data + 2;
	if (safetensors_parse(&s, text, size - 2, bytes, 0, "h", &e) == 0) {
		uint64_t at = 0;
		for (size_t i = 0; i < s.n; at += s.t[i++].bytes)
			MUST(s.t[i].begin == at && s.t[i].rank <= SAFETENSORS_RANK && s.t[i].name);
		MUST(at == bytes);
	} else
		MUST(e.code == EX_BADINPUT && e.text[0]);
	safetensors_close(&s);
	if (qwen3_config_parse(text, size - 2, "c", &c, &e) == 0) {
		MUST(c.heads % c.kv_heads == 0 && c.layers > 0 && c.rope_theta > 1);
		for (int i = 0; qwen3_tensor(&c, i, name, shape, &rank); i++)
			MUST(shape[0] > 0 && strlen(name) < QWEN3_NAME - 1);
	} else
		MUST(e.code == EX_BADINPUT && e.text[0]);
	return 0;
}
