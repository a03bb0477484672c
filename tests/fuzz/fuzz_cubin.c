/*
 * fuzz_cubin.c - any bytes as a compiled module, any text as PTX: read, gated, fitted, shown.
 *
 * Text that begins with a dot, a slash, a brace or a blank is PTX, everything else a module.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fuzz.h"

#include "cubin.h"

#include <stdlib.h>
#include <string.h>

static const char *const entries[] = {"k", "gemm"};

static void ptx(const char *text, size_t len)
{
	char code[48], why[256];
	int clocks = ptx_clocks(text, len);
	MUST(clocks >= 0);
	if (ptx_gate(text, len, entries, 2, code, why))
		MUST(!strncmp(code, "guard.", 6) && why[0]);
	if (ptx_clock_gate(text, len, code, why))
		MUST(clocks > 0 && !strcmp(code, "guard.opcode"));
	/* the note that such a PTX leads to reads back: whatever its globals are called */
	struct buf b = BUF_INIT, log = BUF_INIT;
	struct err e;
	static struct cubin c;
	char *symbol[] = {"_Z1kv", "gemm"};
	buf_add(&b, "not a module", 12);
	buf_add(&log, text, len);
	MUST(!cubin_note_add(&b, text, len, entries, symbol, 2, buf_str(&log), &e) || e.text[0]);
	MUST(cubin_parse(b.data, b.len, &c, &e) == -1);
	buf_free(&b);
	buf_free(&log);
}

static void module(const uint8_t *data, size_t size)
{
	static struct cubin c;
	struct err e = {0};
	char code[48], why[256];
	if (cubin_parse(data, size, &c, &e)) {
		MUST(e.code == EX_BADINPUT && e.text[0]);
		return;
	}
	MUST(c.nentries <= CUBIN_ENTRIES && c.nglobals <= CUBIN_GLOBALS);
	for (int i = 0; i < c.nentries; i++) {
		const struct cubin_entry *k = &c.entry[i];
		MUST(memchr(k->name, 0, CUBIN_NAME) && k->nparams <= CUBIN_PARAMS && k->shared >= 0);
		for (int p = 0; p < k->nparams; p++)
			MUST(k->param[p].size > 0);
	}
	if (cubin_gate(&c, entries, 2, code, why))
		MUST(!strncmp(code, "guard.", 6));
	cJSON *j = cubin_json(&c);
	MUST(j);
	cJSON_Delete(j);
	struct facts f;
	int64_t blocks = -1;
	MUST(!facts_find("sim", &f, &e));
	cubin_facts(&c, &f);
	for (int i = 0; i < c.nentries; i++)
		MUST(!facts_occupancy(&f, c.entry[i].name, 128, 1024, &blocks, &e) && blocks >= 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size && memchr("./{ \n", data[0], 5))
		ptx((const char *)data, size);
	else
		module(data, size);
	return 0;
}
