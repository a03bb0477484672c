/*
 * fuzz_engine_spec.c - any text as the spec.json of an engine problem.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fuzz.h"

#include "../../stages/engine/engine_protocol.h"
#include "engine_spec.h"

#include <string.h>

static void look(const struct engine_workload *w, int n)
{
	MUST(n >= 0 && n <= ENGINE_WORKLOADS);
	for (int i = 0; i < n; i++)
		MUST(w[i].batch >= 1 && w[i].batch <= ENGINE_BATCH_MOST && w[i].prompt >= 1 && w[i].steps >= 1 &&
		     (int64_t)w[i].batch * ((int64_t)w[i].prompt + w[i].steps) <= ENGINE_TOKENS_MOST && memchr(w[i].name, 0, SPEC_NAME));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct engine_spec *s;
	struct err e = {0};
	enum spec_kind k;
	if (engine_spec_parse((const char *)data, size, "spec.json", &s, &e)) {
		MUST(e.text[0]);
		return 0;
	}
	MUST(!spec_kind((const char *)data, size, &k, &e) && k == SPEC_ENGINE);
	look(s->public, s->npublic);
	look(s->proxy, s->nproxy);
	look(s->odd, s->nodd);
	look(s->tiny, s->ntiny);
	MUST(s->npublic >= 1 && s->ntiny >= 1 && s->load_s > 0 && s->step_s > 0 && s->memory_bytes > 0);
	engine_spec_free(s);
	return 0;
}
