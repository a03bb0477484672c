/*
 * page_read.c - see page_read.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "page_read.h"

#include "facts.h"
#include "file.h"
#include "json.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COMPARE_MAX = 8 << 20 };

static cJSON *read_json(const char *base, const char *fmt, const char *name)
{
	struct err none;
	char *file = xasprintf(fmt, name), *path = xasprintf("%s%s", base, file);
	cJSON *j = json_read(path, &JSON_OURS, NULL, &none);
	free(file), free(path);
	return j;
}

int page_is_start(const char *base, const struct page_row *r)
{
	if (r->parent || strcmp(r->item, "tunables: no change") != 0)
		return 0;
	cJSON *j = read_json(base, "trials/%s/a0/propose.json", r->trial);
	const cJSON *data = j ? json_get(j, "data") : NULL;
	int yes = data && !strcmp(json_get_str(data, "parent_from", ""), "start");
	cJSON_Delete(j);
	return yes;
}

static void add_lines(cJSON *all, const char *path)
{
	struct buf b = BUF_INIT;
	struct err none;
	if (!file_read(path, COMPARE_MAX, &b, &none)) {
		for (char *line = b.data, *end; line && (end = strchr(line, '\n')); line = end + 1) {
			cJSON *j = json_parse(line, (size_t)(end - line), &JSON_OURS, path, &none);
			if (j)
				cJSON_AddItemToArray(all, j);
		}
	}
	buf_free(&b);
}

cJSON *page_rivals(const char *dir)
{
	cJSON *all = cJSON_CreateArray();
	struct dirent **list;
	int n = scandir(dir, &list, NULL, alphasort);
	for (int i = 0; i < n; i++) {
		size_t len = strlen(list[i]->d_name);
		if (!strncmp(list[i]->d_name, "compare", 7) && len > 6 && !strcmp(list[i]->d_name + len - 6, ".jsonl")) {
			char *path = xasprintf("%s/%s", dir, list[i]->d_name);
			add_lines(all, path);
			free(path);
		}
		free(list[i]);
	}
	if (n >= 0)
		free(list);
	return all;
}

/* The fastest of that size, measured on a GPU of that name. */
static void find_rival(const cJSON *rivals, const char *spec, const char *gpu, struct page_size *s)
{
	for (const cJSON *j = rivals ? rivals->child : NULL; j; j = j->next) {
		double us = json_get_num(j, "cold_us", 0);
		if (!(us > 0) || (s->rival && us >= s->rival_us) || strcmp(json_get_str(j, "spec", ""), spec) ||
		    strcmp(json_get_str(j, "workload", ""), s->name) || strcmp(json_get_str(j, "gpu", ""), gpu))
			continue;
		s->rival = json_get_str(j, "rival", "other");
		s->rival_us = us;
	}
}

static void read_machine(const char *base, const struct page_row *r, struct page_keep *keep)
{
	struct page_machine *m = &keep->machine;
	keep->device = read_json(base, "trials/runs/%s/device.json", r->run);
	const cJSON *gpu = keep->device ? json_get(keep->device, "gpu") : NULL, *c = gpu ? json_get(gpu, "ceilings") : NULL;
	if (!gpu)
		return;
	m->name = json_get_str(gpu, "name", "");
	m->arch = json_get_str(gpu, "arch", "");
	m->driver = json_get_str(gpu, "driver_version", "");
	m->toolkit = json_get_str(keep->device, "toolkit", "");
	if (!c || !cJSON_IsObject(c))
		return;
	m->copy_gbs = json_get_num(c, "copy_gbs", 0);
	m->read_gbs = json_get_num(c, "read_gbs", 0);
	m->fp32_tflops = json_get_num(c, "fp32_tflops", 0);
	m->bf16_tflops = json_get_num(c, "bf16_tflops", 0);
}

void page_read_gpu(const char *base, const struct page_row *champion, const cJSON *rivals, struct page_keep *keep,
		   struct page_group *g)
{
	const struct page_row *any = champion ? champion : g->row[g->n - 1];
	if (device_class_of(any->device) != DEVICE_CUDA)
		return;
	read_machine(base, any, keep);
	g->machine = keep->machine.name ? &keep->machine : NULL;
	keep->verdict = champion ? read_json(base, "trials/%s/confirm.json", champion->trial) : NULL;
	const cJSON *data = keep->verdict ? json_get(keep->verdict, "data") : NULL;
	const cJSON *roof = data ? json_get(data, "roofline") : NULL;
	if (!roof || !cJSON_IsArray(roof))
		return;
	for (const cJSON *w = roof->child; w && g->sizes < PAGE_SIZES; w = w->next) {
		struct page_size *s = &keep->size[g->sizes++];
		*s = (struct page_size){
			.name = json_get_str(w, "name", "?"), .bound = json_get_str(w, "bound", NULL),
			.time_us = json_get_num(w, "time_us", 0), .gbs = json_get_num(w, "gbs", 0),
			.tflops = json_get_num(w, "tflops", 0), .percent = json_get_num(w, "roofline_percent", 0),
		};
		if (g->machine)
			find_rival(rivals, champion->spec, g->machine->name, s);
	}
	g->size = keep->size;
}

void page_read_engine(const char *base, const struct page_row *champion, struct page_keep *keep, struct page_group *g)
{
	if (champion && !keep->verdict)
		keep->verdict = read_json(base, "trials/%s/confirm.json", champion->trial);
	const cJSON *data = keep->verdict ? json_get(keep->verdict, "data") : NULL;
	const cJSON *engine = data ? json_get(data, "engine") : NULL, *list = engine ? json_get(engine, "workloads") : NULL;
	if (!list || !cJSON_IsArray(list))
		return;
	g->ceilings = json_get_str(engine, "ceilings", NULL);
	for (const cJSON *w = list->child; w && g->works < PAGE_SIZES; w = w->next) {
		const cJSON *c = json_get(w, "candidate"), *n = json_get(w, "native");
		if (!cJSON_IsObject(c))
			continue;
		keep->work[g->works++] = (struct page_work){
			.name = json_get_str(w, "name", "?"), .batch = (int)json_get_int(w, "batch", 0),
			.prompt = (int)json_get_int(w, "prompt", 0), .steps = (int)json_get_int(w, "steps", 0),
			.total_s = json_get_num(c, "total_s", 0), .ttft_s = json_get_num(c, "ttft_s", 0),
			.tpot_s = json_get_num(c, "tpot_s", 0), .tokens_s = json_get_num(c, "tokens_per_s", 0),
			.of_floor = json_get_num(c, "of_floor", 0), .ttft_of_floor = json_get_num(c, "ttft_of_floor", 0),
			.tpot_of_floor = json_get_num(c, "tpot_of_floor", 0),
			.native_s = cJSON_IsObject(n) ? json_get_num(n, "total_s", 0) : 0,
		};
	}
	g->work = keep->work;
}

void page_keep_free(struct page_keep *keep)
{
	cJSON_Delete(keep->verdict);
	cJSON_Delete(keep->device);
	*keep = (struct page_keep){0};
}
