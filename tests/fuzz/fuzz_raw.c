/*
 * fuzz_raw.c - any bytes as the raw samples of a bench: what is accepted is exactly as long as it says.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fuzz.h"

#include "rawfile.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct raw r, again;
	struct err e = {0};
	if (raw_parse(data, size, "input", &r, &e)) {
		MUST(e.code == EX_BADINPUT && e.text[0]);
		return 0;
	}
	MUST(r.ticks_per_s > 0 && size == RAW_HEADER + r.count * RAW_RECORD);
	raw_begin(&again, r.ticks_per_s);
	for (uint64_t i = 0; i < r.count; i++) {
		struct raw_rep rep;
		raw_get(&r, i, &rep);
		raw_add(&again, &rep);
	}
	size_t n;
	const void *bytes = raw_bytes(&again, &n);
	MUST(n == size && !memcmp(bytes, data, size));
	raw_free(&again);
	raw_free(&r);
	return 0;
}
