/*
 * fuzz_reply.c - any bytes as a model's reply.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fuzz.h"

#include "reason.h"
#include "reply.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct reply r;
	reply_parse((const char *)data, size, &r);
	MUST(r.code && reason_find(r.code));
	MUST(strcmp(r.code, "ok") ? r.message[0] : !r.message[0]);
	reply_free(&r);
	return 0;
}
