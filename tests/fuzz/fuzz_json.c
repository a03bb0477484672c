/*
 * fuzz_json.c - any bytes as JSON: what the strict reader accepts is written and read again.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fuzz.h"

#include "json.h"
#include "jsonw.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct json_limits limits = {1 << 16, 12};
	struct jsonw a = {0}, b = {0};
	struct err e = {0};
	cJSON *top = json_parse((const char *)data, size, &limits, "input", &e);
	if (!top) {
		MUST(e.text[0] && e.code == EX_BADINPUT);
		return 0;
	}
	jw_item(&a, NULL, top);
	cJSON_Delete(top);
	top = json_parse(buf_str(&a.out), a.out.len, &(struct json_limits){1 << 20, 12}, "again", &e);
	MUST(top);
	jw_item(&b, NULL, top);
	MUST(!strcmp(buf_str(&a.out), buf_str(&b.out)));
	cJSON_Delete(top);
	jw_free(&a);
	jw_free(&b);
	return 0;
}
