/*
 * gpu_take.c - see gpu.h: the GPU a run is for, and which of this machine's GPUs it may use.
 *
 *   device.json   made with the run, pinned in run.json: {"schema","toolkit","gpu": report}
 *   gpus.json     made at every start of make, no evidence: the reports of this machine's GPUs whose
 *                 facts are those of device.json
 *
 * SPDX-License-Identifier: MIT
 */
#include "gpu.h"

#include "file.h"
#include "json.h"
#include "toolkit.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { FILE_LIMIT = 1 << 20, POLL_MS = 20 };

/* --- device.json --- */

int gpu_save(const struct gpu *g, const char *toolkit, const char *path, char sha[HASH_HEX], struct err *e)
{
	struct jsonw w = {.pretty = 1};
	jw_obj(&w, NULL);
	jw_str(&w, "schema", "touchstone/device/1");
	jw_str(&w, "toolkit", toolkit);
	gpu_write(g, &w, "gpu");
	jw_end(&w);
	buf_addc(&w.out, '\n');
	hash_hex(buf_str(&w.out), w.out.len, sha);
	int rc = file_write(path, buf_str(&w.out), w.out.len, 0644, e);
	jw_free(&w);
	return rc;
}

int gpu_of_run_toolkit(const struct run *r, struct gpu *g, char toolkit[32], struct err *e)
{
	char path[TRIAL_PATH], sha[HASH_HEX];
	struct buf text = BUF_INIT;
	const char *pin = run_pin_device(r);
	if (!pin)
		return err_set(e, EX_BADINPUT, "run %s is for no GPU: it has no device.json", r->name);
	run_path(path, r->name, "device.json");
	int rc = file_read(path, FILE_LIMIT, &text, e);
	if (!rc) {
		hash_hex(buf_str(&text), text.len, sha);
		if (strcmp(sha, pin) != 0)
			rc = err_set(e, EX_BADINPUT, "'%s' changed after the run began", path);
	}
	if (!rc)
		rc = gpu_device_parse(buf_str(&text), text.len, path, g, toolkit, e);
	buf_free(&text);
	if (!rc && strcmp(g->facts.slug, r->device) != 0)
		rc = err_set(e, EX_BADINPUT, "'%s' is about %s, the run about %s", path, g->facts.slug, r->device);
	return rc;
}

int gpu_of_run(const struct run *r, struct gpu *g, struct err *e)
{
	char toolkit[32];
	return gpu_of_run_toolkit(r, g, toolkit, e);
}

int facts_of_run(const struct run *r, const char *device, struct facts *f, struct err *e)
{
	struct gpu g;
	if (device_class_of(device) != DEVICE_CUDA)
		return facts_find(device, f, e);
	if (gpu_of_run(r, &g, e))
		return -1;
	if (strcmp(device, g.facts.slug) != 0)
		return err_set(e, EX_BADUSE, "run %s is for %s, not for %.64s", r->name, g.facts.slug, device);
	*f = g.facts;
	return 0;
}

/* --- which GPUs here --- */

static int differs(char out[GPU_WHY], const char *what, int64_t want, int64_t got)
{
	if (want == got)
		return 0;
	snprintf(out, GPU_WHY, "%s is %lld here, %lld in the run", what, (long long)got, (long long)want);
	return 1;
}

int gpu_differs(const struct gpu *want, const struct gpu *got, char out[GPU_WHY])
{
	const struct facts *a = &want->facts, *b = &got->facts;
	char key[32];
	if (strcmp(a->slug, b->slug) != 0 || strcmp(want->arch, got->arch) != 0) {
		snprintf(out, GPU_WHY, "it is %.40s (%s), the run is for %.40s (%s)", b->name, got->arch, a->name,
			 want->arch);
		return 1;
	}
#define SAME(name) differs(out, #name, a->name, b->name)
	if (SAME(sm_count) || SAME(max_shared) || SAME(max_shared_sm) || SAME(shared_reserved) ||
	    SAME(max_threads) || SAME(max_threads_sm) || SAME(max_blocks_sm) || SAME(max_registers) ||
	    SAME(max_registers_sm) || SAME(warp_size) || SAME(l2_bytes) || SAME(max_cluster))
		return 1;
#undef SAME
	for (int i = 0; i < 17; i++) {
		snprintf(key, sizeof key, "clusters of %d", i);
		if (differs(out, key, a->clusters[i], b->clusters[i]))
			return 1;
	}
	for (int i = 0; i < 3; i++)
		if (differs(out, "max_grid", a->max_grid[i], b->max_grid[i]) ||
		    differs(out, "max_block", a->max_block[i], b->max_block[i]))
			return 1;
	return 0;
}

static int write_present(const struct run *r, const struct gpu *g, int n, struct err *e)
{
	char path[TRIAL_PATH];
	struct jsonw w = {0};
	jw_obj(&w, NULL);
	jw_str(&w, "schema", "touchstone/devices/1");
	jw_str(&w, "why", "");
	jw_arr(&w, "gpus");
	for (int i = 0; i < n; i++)
		gpu_write(&g[i], &w, NULL);
	jw_end(&w);
	jw_end(&w);
	buf_addc(&w.out, '\n');
	run_path(path, r->name, "gpus.json");
	int rc = file_write(path, buf_str(&w.out), w.out.len, 0644, e);
	jw_free(&w);
	return rc;
}

/* Those of `all` that will do; else why not, of the last. */
static int matching(const struct gpu *want, const struct gpu *all, int n, struct gpu *fit, char why[GPU_WHY])
{
	int m = 0;
	for (int i = 0; i < n; i++) {
		if (gpu_differs(want, &all[i], why))
			continue;
		if (all[i].usable)
			fit[m++] = all[i];
		else
			snprintf(why, GPU_WHY, "%s", all[i].why);
	}
	return m;
}

int gpu_admit(const struct run *r, struct err *e)
{
	static struct gpu all[GPU_MAX], fit[GPU_MAX];
	struct gpu want;
	char why[GPU_WHY];
	int n;
	if (device_class_of(r->device) != DEVICE_CUDA)
		return 0;
	if (gpu_of_run(r, &want, e) || gpu_list(all, &n, why, e))
		return -1;
	int m = matching(&want, all, n, fit, why);
	if (!m)
		return err_set(e, EX_NOENV, "run %s is for %s, and no GPU here will do: %s", r->name,
			       want.facts.name, why);
	return write_present(r, fit, m, e);
}

int gpu_pin(const char *dir, const char *device, int *gpus, char sha[HASH_HEX], struct err *e)
{
	char path[TRIAL_PATH + 16], version[32];
	struct toolkit t;
	static struct gpu all[GPU_MAX], fit[GPU_MAX];
	struct gpu g;
	char no[GPU_WHY];
	int n;
	struct err why;
	if (gpu_find(device, &g, e) || toolkit_find(&t, e))
		return -1;
	if (gpu_list(all, &n, no, e))
		return -1;
	*gpus = matching(&g, all, n, fit, no);
	snprintf(version, sizeof version, "%d.%d", t.major, t.minor);
	/* A run without them says less, but what it says is as true. */
	if (gpu_calibrate(&g, &why))
		warn("the ceilings of %s are not measured: %s", g.facts.name, why.text);
	snprintf(path, sizeof path, "%s/device.json", dir);
	return gpu_save(&g, version, path, sha, e);
}

static int read_present(const struct run *r, struct gpu g[GPU_MAX], int *n, struct err *e)
{
	char path[TRIAL_PATH], why[GPU_WHY];
	struct buf text = BUF_INIT;
	run_path(path, r->name, "gpus.json");
	int rc = file_exists(path) ? 0 : gpu_admit(r, e);
	if (!rc)
		rc = file_read(path, FILE_LIMIT, &text, e) ||
		     gpu_list_parse(buf_str(&text), text.len, g, n, why, e) ? -1 : 0;
	buf_free(&text);
	if (!rc && !*n)
		rc = err_set(e, EX_NOENV, "'%s' names no GPU", path);
	return rc;
}

/* The first free one. Several processes may wait: each asks for all, so none waits for one GPU while
 * another is free. */
static int take_any(struct lane *l, const struct gpu *g, int n, int *which, struct err *e)
{
	const struct timespec pause = {.tv_nsec = POLL_MS * 1000000L};
	int64_t asked = 0;
	for (;; nanosleep(&pause, NULL))
		for (int i = 0; i < n; i++) {
			int rc = lane_try(l, g[i].uuid, e);
			if (rc < 0)
				return -1;
			if (!asked)
				asked = l->asked_ns;
			l->asked_ns = asked;
			if (rc) {
				*which = i;
				return 0;
			}
		}
}

int gpu_take(const struct run *r, struct lane *l, struct gpu *g, struct err *e)
{
	static struct gpu all[GPU_MAX];
	struct gpu pinned;
	int n = 0, which = 0;
	*l = (struct lane)LANE_INIT;
	if (device_class_of(r->device) != DEVICE_CUDA)
		return lane_exclusive(l, r->device, e);
	if (gpu_of_run(r, &pinned, e) || read_present(r, all, &n, e))
		return -1;
	/* Alone, its gate keeps the order of those who wait. */
	if (n == 1 ? lane_exclusive(l, all[0].uuid, e) : take_any(l, all, n, &which, e))
		return -1;
	*g = all[which];
	g->ceilings = pinned.ceilings;
	return 0;
}

int gpu_lanes(const struct run *r, struct gpu g[GPU_MAX], long holder[GPU_MAX], struct err *e)
{
	char path[TRIAL_PATH];
	int n = 0;
	run_path(path, r->name, "gpus.json");
	if (device_class_of(r->device) != DEVICE_CUDA || !file_exists(path) || read_present(r, g, &n, e))
		return 0;
	for (int i = 0; i < n; i++) {
		char name[GPU_UUID + 8];
		snprintf(name, sizeof name, "lane-%s", g[i].uuid);
		holder[i] = lock_holder(name);
	}
	return n;
}
