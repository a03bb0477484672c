/*
 * gpu.c - see gpu.h: asking the probe, choosing, ceilings. The GPUs of a run are in gpu_take.c.
 *
 * SPDX-License-Identifier: MIT
 */
#include "gpu.h"

#include "file.h"
#include "json.h"
#include "spawn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ENV_MAX = 12, REPORT_MAX = 1 << 20 };
static const double LIMIT_S = 60; /* eight cold GPUs take some seconds; a hung driver for ever */

static int probe_start(struct spawn_proc *p, const char *what, const char *uuid, struct err *e)
{
	static const char *const passed[] = {"LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "CUDA_MPS_PIPE_DIRECTORY",
					     "ASAN_OPTIONS", "UBSAN_OPTIONS"};
	char path[4096], *own[ENV_MAX];
	const char *env[ENV_MAX] = {"LC_ALL=C", "PATH=" SPAWN_PATH}, *argv[] = {path, what, uuid, NULL};
	int n = 2, kept = 0;
	if (spawn_tool("probe", path, sizeof path, e))
		return -1;
	for (size_t i = 0; i < sizeof passed / sizeof *passed; i++)
		if (getenv(passed[i]))
			env[n++] = own[kept++] = xasprintf("%s=%s", passed[i], getenv(passed[i]));
	struct spawn_request q = {.argv = argv, .env = env, .out = SPAWN_CAPTURE, .err = SPAWN_CAPTURE,
				  .out_cap = REPORT_MAX, .wall_s = LIMIT_S};
	int rc = spawn_start(&q, p, e);
	while (kept)
		free(own[--kept]);
	return rc;
}

/* 0 and its text, 1 with the reason when it says no, -1. */
static int probe_end(struct spawn_proc *p, struct buf *out, char why[GPU_WHY], struct err *e)
{
	struct spawn_result r;
	char words[96];
	int rc = 0;
	if (spawn_wait(p, -1, &r, e))
		return -1;
	if (r.code == 0) {
		buf_add(out, buf_str(&r.out), r.out.len);
	} else if (r.timed_out) {
		rc = 1;
		snprintf(why, GPU_WHY, "the driver did not answer within %.0f s", LIMIT_S);
	} else if (r.code == EX_NOENV) {
		const char *text = buf_str(&r.err);
		rc = 1;
		text = strncmp(text, "probe: ", 7) == 0 ? text + 7 : text;
		snprintf(why, GPU_WHY, "%.*s", (int)strcspn(text, "\n"), text);
	} else { /* a driver that takes its caller down is a GPU that cannot be used */
		rc = 1;
		snprintf(why, GPU_WHY, "asking the driver ended with %s", spawn_words(&r, words));
	}
	spawn_result_free(&r);
	return rc;
}

static int ask(const char *what, const char *uuid, struct buf *out, char why[GPU_WHY], struct err *e)
{
	struct spawn_proc p;
	return probe_start(&p, what, uuid, e) ? -1 : probe_end(&p, out, why, e);
}

static struct {
	int asked, n;
	struct gpu g[GPU_MAX];
	char why[GPU_WHY];
} known;

void gpu_forget(void)
{
	known.asked = 0;
}

int gpu_list(struct gpu g[GPU_MAX], int *n, char why[GPU_WHY], struct err *e)
{
	if (!known.asked) {
		struct buf text = BUF_INIT;
		known.n = 0;
		known.why[0] = '\0';
		int rc = ask("devices", NULL, &text, known.why, e);
		if (!rc)
			rc = gpu_list_parse(buf_str(&text), text.len, known.g, &known.n, known.why, e);
		buf_free(&text);
		if (rc < 0)
			return -1;
		known.asked = 1;
	}
	*n = known.n;
	memcpy(g, known.g, (size_t)known.n * sizeof *g);
	memcpy(why, known.why, GPU_WHY);
	return 0;
}

int gpu_state_ask(struct gpu_question *q, const char *uuid, struct err *e)
{
	return probe_start(&q->probe, "state", uuid, e);
}

int gpu_state_told(struct gpu_question *q, struct gpu_state *s, struct err *e)
{
	struct buf text = BUF_INIT;
	char why[GPU_WHY];
	memset(s, 0, sizeof *s);
	int rc = probe_end(&q->probe, &text, why, e);
	if (rc > 0)
		err_set(e, EX_NOENV, "the state of the GPU cannot be told: %s", why);
	else if (!rc)
		rc = gpu_state_parse(buf_str(&text), text.len, s, e);
	buf_free(&text);
	return rc ? -1 : 0;
}

int gpu_state(const char *uuid, struct gpu_state *s, struct err *e)
{
	struct gpu_question q;
	return gpu_state_ask(&q, uuid, e) ? -1 : gpu_state_told(&q, s, e);
}

/* The more able one; of equals the first. */
static int better(const struct gpu *a, const struct gpu *b)
{
	if (a->capability != b->capability)
		return a->capability > b->capability;
	if (a->facts.sm_count != b->facts.sm_count)
		return a->facts.sm_count > b->facts.sm_count;
	return a->memory_bytes > b->memory_bytes;
}

int gpu_pick(const struct gpu *g, int n, const char *device)
{
	int best = -1;
	for (int i = 0; i < n; i++)
		if (g[i].usable && (!strcmp(device, "cuda") || !strcmp(device, g[i].facts.slug)) &&
		    (best < 0 || better(&g[i], &g[best])))
			best = i;
	return best;
}

int gpu_find(const char *device, struct gpu *g, struct err *e)
{
	static struct gpu all[GPU_MAX];
	char why[GPU_WHY];
	int n, any = strcmp(device, "cuda") == 0;
	if (gpu_list(all, &n, why, e))
		return -1;
	int best = gpu_pick(all, n, device);
	if (best >= 0) {
		*g = all[best];
		return 0;
	}
	for (int i = 0; i < n; i++)
		if (any || strcmp(device, all[i].facts.slug) == 0)
			return err_set(e, EX_NOENV, "%s (%s) cannot be used: %s", all[i].facts.name, all[i].uuid,
				       all[i].why);
	if (!n)
		return err_set(e, EX_NOENV, "no GPU for device '%.64s': %s", device, why);
	return err_set(e, EX_NOENV, "no GPU '%.64s' here; there is %s", device, all[0].facts.slug);
}

/* --- ceilings --- */

/* The figure is the way of measuring: 2 takes the driver's copy into account. */
static void cache_path(const struct gpu *g, char path[256])
{
	snprintf(path, 256, ".build/cache/devices/%s-%s-2.json", g->uuid, g->driver_version);
}

/* What cannot be read is measured again. */
int gpu_known_ceilings(struct gpu *g)
{
	char path[256];
	struct gpu was;
	cache_path(g, path);
	cJSON *j = file_exists(path) ? json_read(path, &JSON_OURS, NULL, NULL) : NULL;
	int ok = j && gpu_parse(j, path, &was, NULL) == 0 && strcmp(was.uuid, g->uuid) == 0 &&
		 was.power_limit_w == g->power_limit_w && was.ceilings.copy_gbs > 0;
	cJSON_Delete(j);
	if (ok)
		g->ceilings = was.ceilings;
	return ok;
}

static int keep(const struct gpu *g, struct err *e)
{
	char path[256];
	struct jsonw w = {.pretty = 1};
	gpu_write(g, &w, NULL);
	buf_addc(&w.out, '\n');
	cache_path(g, path);
	int rc = dir_make(".build/cache/devices", e) || file_write(path, buf_str(&w.out), w.out.len, 0644, e);
	jw_free(&w);
	return rc ? -1 : 0;
}

int gpu_measure(struct gpu *g, struct err *e)
{
	struct lane lane = LANE_INIT;
	struct worker *w = NULL;
	struct worker_opts o = {.gpu = g->uuid, .timeout_ns = 30000000000};
	if (lane_exclusive(&lane, g->uuid, e))
		return -1;
	int rc = worker_start(&w, &o, e);
	if (!rc) {
		rc = worker_ceilings(w, &g->ceilings, e);
		worker_stop(w);
	}
	lane_drop(&lane);
	return rc ? -1 : keep(g, e);
}

int gpu_calibrate(struct gpu *g, struct err *e)
{
	return gpu_known_ceilings(g) ? 0 : gpu_measure(g, e);
}
