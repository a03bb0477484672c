/*
 * gpu_json.c - see gpu.h: a GPU's report as JSON, written and read strictly.
 *
 * Probe is our own program, but device.json travels with a trial's record, and every size of every
 * launch comes out of these numbers: each has its range.
 *
 * SPDX-License-Identifier: MIT
 */
#include "gpu.h"

#include "json.h"
#include "jwalk.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum { BIG = 1 << 30 };

struct number {
	const char *key;
	size_t at;
	int wide;          /* int64_t, else int */
	int64_t min, max;
};

#define FACT(name, min, max) {#name, offsetof(struct gpu, facts.name), 1, min, max}
#define PLAIN(name, min, max) {#name, offsetof(struct gpu, name), 0, min, max}
#define HUGE_INT ((int64_t)1 << 50)

static const struct number NUMBERS[] = {
	PLAIN(index, 0, GPU_MAX - 1), PLAIN(capability, 10, 999),
	FACT(sm_count, 1, 1 << 16), FACT(max_shared, 1, BIG), FACT(max_shared_sm, 1, BIG),
	FACT(shared_reserved, 0, BIG), FACT(max_threads, 1, 1 << 16), FACT(max_threads_sm, 1, 1 << 20),
	FACT(max_blocks_sm, 1, 1 << 16), FACT(max_registers, 1, 1 << 16), FACT(max_registers_sm, 1, BIG),
	FACT(warp_size, 1, 1024), FACT(l2_bytes, 0, HUGE_INT), FACT(max_cluster, 1, 16),
	{"memory_bytes", offsetof(struct gpu, memory_bytes), 1, 0, HUGE_INT},
	PLAIN(driver, 0, 1 << 20), PLAIN(cuda, 0, 1 << 20), PLAIN(sm_mhz_max, 0, 1 << 20),
	PLAIN(mem_mhz_max, 0, 1 << 20), PLAIN(power_limit_w, 0, 1 << 20), PLAIN(ecc, -1, 1),
	PLAIN(mig, -1, 1), PLAIN(mps, -1, 1), PLAIN(persistence, -1, 1), PLAIN(vmm_export, -1, 1),
	PLAIN(sees, -1, 1), PLAIN(others, -1, 1 << 20), PLAIN(usable, 0, 1),
};
enum { NUMBER_COUNT = sizeof NUMBERS / sizeof *NUMBERS };

struct text {
	const char *key;
	size_t at, size;
};

#define TEXT(key, member) {key, offsetof(struct gpu, member), sizeof(((struct gpu *)0)->member)}

static const struct text TEXTS[] = {
	TEXT("uuid", uuid), TEXT("name", facts.name), TEXT("slug", facts.slug), TEXT("arch", arch),
	TEXT("driver_version", driver_version), TEXT("compute_mode", compute_mode), TEXT("why", why),
};
enum { TEXT_COUNT = sizeof TEXTS / sizeof *TEXTS };

static const char *const CEILINGS[] = {
	"copy_gbs", "read_gbs", "write_gbs", "fp32_tflops", "bf16_tflops", "fp16_tflops", NULL,
};

/* The figures in the order of CEILINGS. */
static void ceilings_of(struct worker_ceilings *c, double *at[6])
{
	at[0] = &c->copy_gbs;
	at[1] = &c->read_gbs;
	at[2] = &c->write_gbs;
	at[3] = &c->fp32_tflops;
	at[4] = &c->bf16_tflops;
	at[5] = &c->fp16_tflops;
}

static void put_list(struct jsonw *w, const char *key, const int64_t *v, int n)
{
	jw_arr(w, key);
	for (int i = 0; i < n; i++)
		jw_int(w, NULL, v[i]);
	jw_end(w);
}

void gpu_ceilings_write(const struct worker_ceilings *c, struct jsonw *w, const char *key)
{
	struct worker_ceilings copy = *c;
	double *at[6];
	if (c->copy_gbs <= 0) {
		jw_null(w, key);
		return;
	}
	ceilings_of(&copy, at);
	jw_obj(w, key);
	for (int i = 0; i < 6; i++)
		jw_num(w, CEILINGS[i], *at[i]);
	jw_end(w);
}

void gpu_write(const struct gpu *g, struct jsonw *w, const char *key)
{
	const char *base = (const char *)g;
	jw_obj(w, key);
	for (int i = 0; i < TEXT_COUNT; i++)
		jw_str(w, TEXTS[i].key, base + TEXTS[i].at);
	for (int i = 0; i < NUMBER_COUNT; i++) {
		int64_t wide = 0;
		int narrow;
		memcpy(&wide, base + NUMBERS[i].at, NUMBERS[i].wide ? sizeof wide : 0);
		memcpy(&narrow, base + NUMBERS[i].at, sizeof narrow);
		jw_int(w, NUMBERS[i].key, NUMBERS[i].wide ? wide : narrow);
	}
	put_list(w, "clusters", g->facts.clusters, 17);
	put_list(w, "max_grid", g->facts.max_grid, 3);
	put_list(w, "max_block", g->facts.max_block, 3);
	gpu_ceilings_write(&g->ceilings, w, "ceilings");
	jw_end(w);
}

static int take_number(struct jwalk *w, const cJSON *obj, const struct number *f, struct gpu *g)
{
	int64_t v = 0;
	if (!jwalk_need(w, obj, f->key) || jwalk_get_int(w, obj, f->key, f->min, f->max, &v))
		return -1;
	int narrow = (int)(v & 0x7fffffff);
	if (v < 0)
		narrow = -1; /* none goes below */
	memcpy((char *)g + f->at, f->wide ? (void *)&v : (void *)&narrow, f->wide ? sizeof v : sizeof narrow);
	return 0;
}

static int take_text(struct jwalk *w, const cJSON *obj, const struct text *f, struct gpu *g)
{
	const cJSON *item = jwalk_need(w, obj, f->key);
	size_t at = jwalk_enter(w, f->key);
	const char *s = item ? jwalk_string(w, item, f->size - 1) : NULL;
	jwalk_leave(w, at);
	if (!s)
		return -1;
	snprintf((char *)g + f->at, f->size, "%s", s);
	return 0;
}

static int take_list(struct jwalk *w, const cJSON *obj, const char *key, int64_t min, int n, int64_t *out)
{
	int count = 0, rc = 0;
	const cJSON *list = jwalk_need(w, obj, key), *item;
	size_t at = jwalk_enter(w, key);
	if (!list || jwalk_array(w, list, n, n, &count))
		rc = -1;
	for (item = rc ? NULL : list->child; item && !rc; item = item->next)
		rc = jwalk_int(w, item, min, INT32_MAX, out++);
	jwalk_leave(w, at);
	return rc;
}

static int take_ceilings(struct jwalk *w, const cJSON *obj, struct worker_ceilings *c)
{
	const cJSON *item = jwalk_need(w, obj, "ceilings");
	double *to[6];
	int rc = 0;
	memset(c, 0, sizeof *c);
	if (!item)
		return -1;
	if (cJSON_IsNull(item))
		return 0;
	size_t at = jwalk_enter(w, "ceilings");
	ceilings_of(c, to);
	if (jwalk_object(w, item, CEILINGS))
		rc = -1;
	for (int i = 0; i < 6 && !rc; i++) {
		rc = !jwalk_need(w, item, CEILINGS[i]) || jwalk_get_number(w, item, CEILINGS[i], to[i]) ? -1 : 0;
		if (!rc && !(*to[i] > 0 && *to[i] < 1e9))
			rc = jwalk_fail(w, "'%s' is no ceiling", CEILINGS[i]);
	}
	jwalk_leave(w, at);
	return rc;
}

static int well_named(struct jwalk *w, const struct gpu *g)
{
	const char *u = g->uuid, *a = g->arch;
	if ((strncmp(u, "GPU-", 4) != 0 && strncmp(u, "MIG-", 4) != 0) ||
	    strspn(u + 4, "0123456789abcdef-") != strlen(u + 4))
		return jwalk_fail(w, "'uuid' is no GPU's");
	if (!trial_name_ok(g->facts.slug) || device_class_of(g->facts.slug) != DEVICE_CUDA)
		return jwalk_fail(w, "'slug' is no name");
	if (strncmp(a, "sm_", 3) != 0 || strspn(a + 3, "0123456789abcdefghijklmnopqrstuvwxyz") != strlen(a + 3))
		return jwalk_fail(w, "'arch' is no architecture");
	return 0;
}

int gpu_parse(const cJSON *json, const char *what, struct gpu *g, struct err *e)
{
	const char *keys[NUMBER_COUNT + TEXT_COUNT + 5] = {"clusters", "max_grid", "max_block", "ceilings"};
	struct jwalk w;
	int n = 4;
	for (int i = 0; i < NUMBER_COUNT; i++)
		keys[n++] = NUMBERS[i].key;
	for (int i = 0; i < TEXT_COUNT; i++)
		keys[n++] = TEXTS[i].key;
	memset(g, 0, sizeof *g);
	g->facts.class = DEVICE_CUDA;
	jwalk_begin(&w, what, e);
	if (jwalk_object(&w, json, keys))
		return -1;
	for (int i = 0; i < NUMBER_COUNT; i++)
		if (take_number(&w, json, &NUMBERS[i], g))
			return -1;
	for (int i = 0; i < TEXT_COUNT; i++)
		if (take_text(&w, json, &TEXTS[i], g))
			return -1;
	if (take_list(&w, json, "clusters", 0, 17, g->facts.clusters) ||
	    take_list(&w, json, "max_grid", 1, 3, g->facts.max_grid) ||
	    take_list(&w, json, "max_block", 1, 3, g->facts.max_block) || take_ceilings(&w, json, &g->ceilings))
		return -1;
	return well_named(&w, g);
}

static cJSON *open_report(const char *text, size_t len, const char *schema, const char *what, struct err *e)
{
	cJSON *j = json_parse(text, len, &JSON_OURS, what, e);
	const char *got = j ? json_str(j, "schema", what, e) : NULL;
	if (got && strcmp(got, schema) != 0) {
		err_set(e, EX_BADINPUT, "%s is not %s", what, schema);
		got = NULL;
	}
	if (got)
		return j;
	cJSON_Delete(j);
	return NULL;
}

int gpu_list_parse(const char *text, size_t len, struct gpu g[GPU_MAX], int *n, char why[GPU_WHY],
		   struct err *e)
{
	static const char *const keys[] = {"schema", "why", "gpus", NULL};
	const char *what = "report of probe";
	cJSON *j = open_report(text, len, "touchstone/devices/1", what, e);
	int rc = j ? json_only(j, keys, what, e) : -1;
	const cJSON *list = rc ? NULL : json_arr(j, "gpus", what, e), *one;
	*n = 0;
	why[0] = '\0';
	if (!list) {
		cJSON_Delete(j);
		return -1;
	}
	snprintf(why, GPU_WHY, "%s", json_get_str(j, "why", ""));
	cJSON_ArrayForEach(one, list) {
		if (*n == GPU_MAX)
			rc = err_set(e, EX_BADINPUT, "%s: more than %d GPUs", what, GPU_MAX);
		if (rc || (rc = gpu_parse(one, what, &g[*n], e)))
			break;
		++*n;
	}
	cJSON_Delete(j);
	return rc;
}

int gpu_device_parse(const char *text, size_t len, const char *what, struct gpu *g, char toolkit[32],
		     struct err *e)
{
	static const char *const keys[] = {"schema", "toolkit", "gpu", NULL};
	cJSON *j = open_report(text, len, "touchstone/device/1", what, e);
	const cJSON *one = j && !json_only(j, keys, what, e) ? json_obj(j, "gpu", what, e) : NULL;
	int rc = one ? gpu_parse(one, what, g, e) : -1;
	snprintf(toolkit, 32, "%.31s", rc ? "" : json_get_str(j, "toolkit", ""));
	cJSON_Delete(j);
	return rc;
}

/* The members of a state that are plain ints, in order. */
static const struct {
	const char *key;
	size_t at;
} STATE[] = {
	{"temperature_c", offsetof(struct gpu_state, temperature_c)},
	{"power_w", offsetof(struct gpu_state, power_w)},
	{"sm_mhz", offsetof(struct gpu_state, sm_mhz)},
	{"mem_mhz", offsetof(struct gpu_state, mem_mhz)},
	{"foreign", offsetof(struct gpu_state, foreign)},
	{"foreign_pid", offsetof(struct gpu_state, foreign_pid)},
	{"graphics", offsetof(struct gpu_state, graphics)},
};
enum { STATE_COUNT = sizeof STATE / sizeof *STATE };

void gpu_state_write(const struct gpu_state *s, struct jsonw *w, const char *key)
{
	jw_obj(w, key);
	if (!key)
		jw_str(w, "schema", "touchstone/gpu-state/1");
	for (int i = 0; i < STATE_COUNT; i++) {
		int v;
		memcpy(&v, (const char *)s + STATE[i].at, sizeof v);
		jw_int(w, STATE[i].key, v);
	}
	/* Bit masks and nanoseconds since boot stay under 2^53. */
	jw_int(w, "throttle_reasons", (int64_t)s->throttle_reasons);
	jw_int(w, "power_violation_ns", (int64_t)s->power_violation_ns);
	jw_int(w, "thermal_violation_ns", (int64_t)s->thermal_violation_ns);
	jw_end(w);
}

int gpu_state_parse(const char *text, size_t len, struct gpu_state *s, struct err *e)
{
	const char *what = "report of probe";
	cJSON *j = open_report(text, len, "touchstone/gpu-state/1", what, e);
	int64_t v, mask, power, thermal;
	int rc = j ? 0 : -1;
	memset(s, 0, sizeof *s);
	for (int i = 0; i < STATE_COUNT && !rc; i++) {
		rc = json_int(j, STATE[i].key, &v, what, e);
		if (!rc && (v < INT32_MIN || v > INT32_MAX))
			rc = err_set(e, EX_BADINPUT, "%s: '%s' is out of range", what, STATE[i].key);
		int narrow = rc ? 0 : (int)v;
		memcpy((char *)s + STATE[i].at, &narrow, sizeof narrow);
	}
	if (!rc && (json_int(j, "throttle_reasons", &mask, what, e) ||
		    json_int(j, "power_violation_ns", &power, what, e) ||
		    json_int(j, "thermal_violation_ns", &thermal, what, e)))
		rc = -1;
	if (!rc) {
		s->throttle_reasons = (uint64_t)mask;
		s->power_violation_ns = (uint64_t)power;
		s->thermal_violation_ns = (uint64_t)thermal;
	}
	cJSON_Delete(j);
	return rc;
}
