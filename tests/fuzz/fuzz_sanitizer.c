/*
 * fuzz_sanitizer.c - any bytes as what compute-sanitizer wrote.
 *
 * What comes out is clean, one line, and counts nothing that does not stand there.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fuzz.h"

#include "sanitizer.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sanitizer_report r;
	size_t lines = 1;

	sanitizer_parse((const char *)data, size, &r);
	for (size_t i = 0; i < size; i++)
		lines += data[i] == '\n' || data[i] == 0;
	MUST(r.accesses >= 0 && (size_t)r.accesses <= lines && r.findings >= 0);
	MUST(r.done || r.findings == 0);
	MUST(strlen(r.first) < SANITIZER_TEXT && !strchr(r.first, '\n'));
	MUST(!r.accesses || r.first[0]);
	return 0;
}
