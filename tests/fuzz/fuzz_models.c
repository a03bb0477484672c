/*
 * fuzz_models.c - what an endpoint says at /models: a list that is read has names of one clean line.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fuzz.h"

#include "model_list.h"
#include "utf8.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct model_list l;
	struct err e = {0};

	if (model_list_parse((const char *)data, size, "vendor/m", &l, &e))
		return 0;
	MUST(l.n >= 0 && (!l.there || l.n > 0));
	MUST(strlen(l.first) < MODEL_LIST_NAME && !strpbrk(l.first, "\r\n\t\033"));
	MUST(utf8_valid(l.first, strlen(l.first)));
	return 0;
}
