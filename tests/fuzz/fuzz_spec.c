/*
 * fuzz_spec.c - any text as spec.json: parse, then sizes, fills and draws at every workload.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fuzz.h"

#include "spec.h"

#include <string.h>

static uint64_t next(void *ctx)
{
	uint64_t *x = ctx;
	*x = *x * 6364136223846793005u + 1442695040888963407u;
	return *x ^ *x >> 31;
}

static void look(const struct spec *s, const struct axes *a)
{
	int64_t n, v, from, to, total = 0;
	struct err e;
	MUST(!spec_axes_check(s, a, &e));
	for (int i = 0; i < s->ninputs; i++) {
		MUST(!spec_bytes(s, &s->input[i], a, &n, &e) && n >= 1 && n <= s->limits.buffer_bytes);
		MUST(!spec_fill_range(s, &s->input[i], a, &from, &to, &e));
		total += n;
	}
	for (int i = 0; i < s->noutputs; i++) {
		MUST(!spec_bytes(s, &s->output[i], a, &n, &e) && n >= 1);
		spec_reference_bytes(s, &s->output[i], a, &v, &e);
		total += n;
	}
	MUST(total <= s->limits.total_bytes);
	spec_cost(s, a, &n, &v, &e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct spec *s;
	struct err e = {0};
	struct axes a;
	uint64_t seed = 1;
	if (spec_parse((const char *)data, size, "spec.json", &s, &e)) {
		MUST(e.text[0]);
		return 0;
	}
	for (int i = 0; i < s->npublic; i++) {
		look(s, &s->public[i].gpu);
		look(s, &s->public[i].emu);
	}
	for (int i = 0; i < s->ntiny; i++)
		look(s, &s->tiny[i].gpu);
	for (int probe = 0; probe < 2; probe++)
		if (s->held_out_count && !spec_draw(s, 0, probe, next, &seed, &a, &e))
			look(s, &a);
	spec_free(s);
	return 0;
}
