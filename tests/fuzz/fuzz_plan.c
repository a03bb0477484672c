/*
 * fuzz_plan.c - any text as plan.json of a small GEMM spec: parse, check, resolve, write, parse again.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fuzz.h"

#include "plan.h"

#include <string.h>

static const char SPEC[] =
	"{\"schema\":\"touchstone/spec/1\",\"name\":\"g\",\"axes\":{\"M\":{\"type\":\"var\"},\"N\":{\"type\":\"var\"},"
	"\"K\":{\"type\":\"var\"},\"H\":{\"type\":\"const\",\"value\":64}},\"inputs\":{\"A\":{\"shape\":[\"M\",\"K\"],"
	"\"dtype\":\"bfloat16\"},\"B\":{\"shape\":[\"N\",\"K\"],\"dtype\":\"bfloat16\"},\"s\":{\"shape\":null,\"dtype\":"
	"\"float32\"}},\"outputs\":{\"C\":{\"shape\":[\"M\",\"N\"],\"dtype\":\"bfloat16\"}},\"compute\":{\"operand\":"
	"\"bfloat16\",\"accumulator\":\"float32\"},\"reference\":{\"source\":\"r.cu\",\"plan\":\"r.json\"},\"workloads\":"
	"{\"public\":[{\"axes\":{\"M\":128,\"N\":256,\"K\":1024}}],\"tiny\":[{\"M\":17,\"N\":24,\"K\":40}],\"held_out\":{\"axes\":{\"M\":{\"max\":64},\"N\":{\"max\":64},\"K\":{\"max\":64}}}},"
	"\"limits\":{\"launches\":200}}";

static struct spec *spec;

/* No element that the map describes is outside its workspace. */
static void check_map(const struct launches *l, const struct launch_arg *a)
{
	unsigned __int128 last = (unsigned __int128)a->offset + (unsigned)a->map.element_bytes;
	for (int i = 0; i < a->map.rank; i++)
		last += (unsigned __int128)(a->map.dim[i] - 1) *
			(i ? a->map.stride[i - 1] : (unsigned)a->map.element_bytes);
	MUST(a->map.element_bytes > 0);
	if (a->role == ROLE_WORKSPACE)
		MUST(a->index < l->nworkspaces && last <= (unsigned __int128)l->workspace[a->index].bytes);
}

static void check_launches(const struct launches *l, const struct facts *f)
{
	int64_t total = 0;
	MUST(l->n >= 1 && l->n <= spec->limits.launches);
	for (int i = 0; i < l->nworkspaces; i++)
		total += l->workspace[i].bytes;
	for (int i = 0; i < l->nworkspaces; i++)
		MUST(l->workspace[i].bytes || !l->workspace[i].zero);
	MUST(total >= 0 && total <= spec->limits.workspace_bytes);
	for (int i = 0; i < l->n; i++) {
		const struct launch *n = &l->launch[i];
		int64_t threads = (int64_t)n->block[0] * n->block[1] * n->block[2];
		MUST(threads >= 1 && threads <= f->max_threads && n->shared <= f->max_shared);
		for (int k = 0; k < 3; k++)
			MUST(n->grid[k] >= 1 && n->grid[k] <= f->max_grid[k] && n->cluster[k] >= 1);
		for (int k = 0; k < n->nargs; k++) {
			const struct launch_arg *a = &n->arg[k];
			MUST(a->index >= 0 && a->n <= 128 && a->offset >= 0);
			if (a->kind == ARG_MAP)
				check_map(l, a);
			if (a->kind == ARG_BUFFER && a->role == ROLE_WORKSPACE)
				MUST(a->index < l->nworkspaces && a->offset <= l->workspace[a->index].bytes);
		}
	}
	MUST(!l->launch[0].pdl);
}

static void resolve(const struct plan *p, const char *device)
{
	struct facts f;
	struct launches l;
	struct err e;
	const struct axes *at[] = {&spec->public[0].gpu, &spec->tiny[0].gpu};
	struct plan_sizes sizes;
	MUST(!facts_find(device, &f, &e));
	if (plan_sizes(p, spec, &f, 0, &sizes, &e))
		MUST(e.text[0]);
	else
		MUST(sizes.n == 2 && sizes.edges == 8);
	for (int i = 0; i < 2; i++) {
		struct plan_config c;
		int legal;
		plan_config_for(p, spec, at[i], &f, &c, &e);
		plan_config_legal(p, spec, at[i], &f, &c, &legal, &e);
		if (plan_resolve(p, spec, at[i], &f, i, &l, &e))
			continue;
		check_launches(&l, &f);
		launches_free(&l);
	}
}

static void write_again(const struct plan *p)
{
	struct jsonw a = {0}, b = {0};
	struct plan *q;
	struct err e;
	plan_write(p, &a, NULL);
	/* Defaults spelled out may pass the size cap; else it must read back the same. */
	if (!plan_parse(buf_str(&a.out), a.out.len, "again", &q, &e)) {
		plan_write(q, &b, NULL);
		MUST(!strcmp(buf_str(&a.out), buf_str(&b.out)));
		plan_free(q);
	} else {
		MUST(a.out.len > PLAN_MAX_BYTES);
	}
	jw_free(&a);
	jw_free(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct plan *p;
	struct err e = {0};
	int64_t n;
	if (!spec)
		MUST(!spec_parse(SPEC, strlen(SPEC), "spec.json", &spec, &e));
	if (plan_parse((const char *)data, size, "plan.json", &p, &e)) {
		MUST(e.text[0]);
		return 0;
	}
	write_again(p);
	if (!plan_space(p, &n, &e)) {
		struct plan_config c;
		plan_config_at(p, n - 1, &c);
		MUST(plan_config_index(p, &c) == n - 1);
	}
	if (!plan_check(p, spec, &e)) {
		resolve(p, "emu");
		resolve(p, "sim");
		struct plan_config c;
		plan_config_current(p, &c);
		char **m = plan_macros(p, spec, &c);
		plan_macros_free(m);
	}
	plan_free(p);
	return 0;
}
