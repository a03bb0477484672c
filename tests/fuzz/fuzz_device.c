/*
 * fuzz_device.c - any bytes as device.json, as the report of probe and as the state of a GPU.
 *
 * What is accepted is written and read again as the same, and has sizes that expressions and
 * launches can divide by.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fuzz.h"

#include "gpu.h"
#include "json.h"

#include <string.h>

static void check(const struct gpu *g)
{
	struct jsonw a = {0}, b = {0};
	struct gpu again;
	struct err e = {0};
	MUST(g->facts.warp_size > 0 && g->facts.sm_count > 0 && g->facts.max_threads_sm > 0);
	MUST(g->facts.max_cluster > 0 && g->facts.max_cluster < 17 && g->facts.max_grid[2] > 0);
	MUST(trial_name_ok(g->facts.slug) && device_class_of(g->facts.slug) == DEVICE_CUDA);
	MUST(g->index >= 0 && g->index < GPU_MAX && !strchr(g->uuid, '/') && !strchr(g->arch, '/'));
	gpu_write(g, &a, NULL);
	cJSON *j = json_parse(a.out.data, a.out.len, &JSON_OURS, "again", &e);
	MUST(j && !gpu_parse(j, "again", &again, &e));
	MUST(!memcmp(&g->facts.sm_count, &again.facts.sm_count, sizeof g->facts.sm_count));
	gpu_write(&again, &b, NULL);
	MUST(!strcmp(buf_str(&a.out), buf_str(&b.out)));
	cJSON_Delete(j);
	jw_free(&a);
	jw_free(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct gpu g[GPU_MAX];
	struct gpu_state s;
	struct err e = {0};
	char why[GPU_WHY], toolkit[32];
	const char *text = (const char *)data;
	int n = 0;
	if (!gpu_device_parse(text, size, "input", &g[0], toolkit, &e))
		check(&g[0]);
	else
		MUST(e.text[0] && e.code == EX_BADINPUT);
	if (!gpu_list_parse(text, size, g, &n, why, &e))
		for (int i = 0; i < n; i++)
			check(&g[i]);
	MUST(n >= 0 && n <= GPU_MAX);
	gpu_state_parse(text, size, &s, &e);
	return 0;
}
