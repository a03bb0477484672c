/*
 * record_champion.c - champion/SPEC/DEVICE: the best so far, ready to use.
 *
 * Builds champion/SPEC/.v/DEVICE-NNNN whole (sources, evidence, README), syncs it, then swaps
 * the symlink. A reader sees the old champion or the new one.
 *
 * SPDX-License-Identifier: MIT
 */
#include "record.h"

#include "engine_files.h"
#include "facts.h"
#include "file.h"
#include "json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int copy_in(const struct closed *c, const char *from, const char *dir, const char *to,
		   struct err *e)
{
	char source[TRIAL_PATH], target[TRIAL_PATH];
	trial_path(source, c->trial.id, from);
	snprintf(target, sizeof target, "%.180s/%.60s", dir, to);
	return file_copy(source, target, e);
}

static void put_ratio(struct buf *b, const cJSON *data, const char *key, const char *text)
{
	char lo[64], hi[64];
	snprintf(lo, sizeof lo, "%s_lo95", key);
	snprintf(hi, sizeof hi, "%s_hi95", key);
	double v = json_get_num(data, key, 0), l = json_get_num(data, lo, 0), h = json_get_num(data, hi, 0);
	if (v > 0)
		buf_addf(b, "- %s: %.3fx", text, v);
	if (v > 0 && l > 0 && h > 0)
		buf_addf(b, " (95 %% interval %.3f to %.3f)", l, h);
	if (v > 0)
		buf_addc(b, '\n');
}

/* What start/ gives by itself, so that nobody takes it for found. Without such a trial nothing is said. */
static void put_start(struct buf *b, const struct closed *c)
{
	struct closed s;
	if (!record_start(c, &s))
		return;
	const cJSON *was = s.promote.data, *now = c->promote.data;
	/* Timed while nothing was kept: then the champion it met was the baseline. */
	const char *key = json_get_num(was, "ratio_baseline", 0) > 0 ? "ratio_baseline"
			  : s.before ? "" : "ratio";
	double worth = *key ? json_get_num(was, key, 0) : 0, all = json_get_num(now, "ratio_baseline", 0);
	if (*key)
		put_ratio(b, was, key, "start/ by itself, no work of the loop, against the baseline");
	if (s.number == c->number)
		buf_adds(b, "- this is start/ itself: the loop has found nothing yet\n");
	else if (c->before && strcmp(c->before, s.trial.id) == 0)
		put_ratio(b, now, "ratio", "found by the loop beyond start/");
	else if (worth > 0 && all > 0)
		buf_addf(b, "- found by the loop beyond start/: %.3fx (of the two ratios to the baseline)\n",
			 all / worth);
	closed_free(&s);
}

/* The file it begins in, or NULL. */
static const char *engine_of(const struct closed *c)
{
	static const char *const NAME[] = {"engine.c", "engine.cu"};
	for (int i = 0; i < 2; i++) {
		char path[TRIAL_PATH], file[32];
		snprintf(file, sizeof file, "candidate/%s", NAME[i]);
		trial_path(path, c->trial.id, file);
		if (file_exists(path))
			return NAME[i];
	}
	return NULL;
}

static int write_readme(const struct closed *c, const char *dir, struct err *e)
{
	char path[TRIAL_PATH];
	struct buf b = BUF_INIT;
	const cJSON *d = c->promote.data;
	buf_addf(&b, "# %s on %s: trial %s\n\n", c->trial.spec, c->trial.device, c->trial.id);
	if (strcmp(c->trial.device, "sim") == 0)
		buf_adds(&b, "SIMULATED: no program ran; the figures are synthetic.\n\n");
	const char *engine = engine_of(c);
	if (engine)
		buf_addf(&b, "An engine, timed on the %s that its record names.\n\n", strcmp(engine, "engine.c") ? "GPU" : "processor");
	else if (strcmp(c->trial.device, "emu") == 0)
		buf_adds(&b, "EMULATED on a processor: the figures are not GPU speeds.\n\n");
	put_ratio(&b, d, "ratio_baseline", "faster than the baseline by");
	put_ratio(&b, d, "ratio", "faster than the champion before it by");
	put_start(&b, c);
	if (*c->title)
		buf_addf(&b, "- change: %s\n", c->title);
	buf_addf(&b, "- candidate: %s\n", c->candidate);
	if (engine)
		buf_addf(&b, "\n`%s`, and `kernels/` if it is there, is the candidate.", engine);
	else
		buf_adds(&b, "\n`kernel.cu` and `plan.json` are the candidate with its tunables fixed.");
	buf_adds(&b, " `evidence/` holds copies of\nthe verdicts it was kept on; ");
	buf_addf(&b, "`trials/%s/` has everything", c->trial.id);
	buf_addf(&b, ", `make replay TRIAL=%s` judges it again", c->trial.id);
	buf_adds(&b, engine ? ",\n`make freeze` judges and times it once more and copies it.\n" : ".\n");
	snprintf(path, sizeof path, "%.200s/README.md", dir);
	int rc = file_write(path, b.data, b.len, 0644, e);
	buf_free(&b);
	return rc;
}

static int copy_candidate(const struct closed *c, const char *dir, struct err *e)
{
	char from[TRIAL_PATH];
	struct engine_files f;
	if (!engine_of(c))
		return copy_in(c, "candidate/kernel.cu", dir, "kernel.cu", e) ||
		       copy_in(c, "candidate/plan.json", dir, "plan.json", e) ? -1 : 0;
	trial_path(from, c->trial.id, "candidate");
	int rc = engine_files_folder(from, &f, e);
	if (rc == 0)
		rc = engine_files_write(dir, &f, e);
	engine_files_free(&f);
	return rc;
}

static int fill_folder(const struct closed *c, const char *dir, struct err *e)
{
	static const char *const evidence[] = {"trial.json", "tune.json", "judge.json",
		"bench.json", "confirm.json", "promote.json"};
	static const char *const ticks[] = {"bench.prereg.json", "bench.raw", "bench.engine.jsonl", "confirm.prereg.json",
		"confirm.raw", "confirm.engine.jsonl"};
	char path[TRIAL_PATH], to[64];
	snprintf(path, sizeof path, "%.200s/evidence", dir);
	if (dir_make(path, e) || copy_candidate(c, dir, e))
		return -1;
	for (size_t i = 0; i < sizeof evidence / sizeof evidence[0]; i++) {
		snprintf(to, sizeof to, "evidence/%s", evidence[i]);
		if (copy_in(c, evidence[i], dir, to, e))
			return -1;
	}
	/* What GPU that was, with its ceilings: pinned by run.json like the spec. */
	snprintf(to, sizeof to, "../runs/%.20s/device.json", c->trial.run);
	if (device_class_of(c->trial.device) == DEVICE_CUDA && copy_in(c, to, dir, "evidence/device.json", e))
		return -1;
	/* What tools/recheck needs. */
	for (size_t i = 0; i < sizeof ticks / sizeof ticks[0]; i++) {
		trial_path(path, c->trial.id, ticks[i]);
		snprintf(to, sizeof to, "evidence/%s", ticks[i]);
		if (file_exists(path) && copy_in(c, ticks[i], dir, to, e))
			return -1;
	}
	return record_code(c, dir, e) || write_readme(c, dir, e) || file_sync_dir(dir, e) ? -1 : 0;
}

/* Number of the trial the link points at now; 0 when there is none. */
static long linked_number(const char *link)
{
	char target[TRIAL_PATH];
	ssize_t n = readlink(link, target, sizeof target - 1);
	if (n <= 0)
		return 0;
	target[n] = '\0';
	const char *dash = strrchr(target, '-');
	return dash ? strtol(dash + 1, NULL, 10) : 0;
}

int record_champion(const struct closed *c, struct err *e)
{
	char link[TRIAL_PATH], target[TRIAL_PATH], dir[TRIAL_PATH], tmp[TRIAL_PATH];
	if (!c->kept)
		return 0;
	snprintf(link, sizeof link, "champion/%s/%s", c->trial.spec, c->trial.device);
	if (linked_number(link) >= c->number)
		return 0;
	snprintf(target, sizeof target, ".v/%s-%s", c->trial.device, c->trial.id);
	snprintf(dir, sizeof dir, "champion/%s/%.120s", c->trial.spec, target);
	snprintf(tmp, sizeof tmp, "%.220s.tmp.%ld", dir, (long)getpid());
	if (!file_exists(dir)) {
		if (dir_remove(tmp, e) || dir_make(tmp, e) || fill_folder(c, tmp, e))
			return -1;
		if (rename(tmp, dir))
			return err_sys(e, "cannot rename '%s' to '%s'", tmp, dir);
	}
	snprintf(tmp, sizeof tmp, "champion/%s/.v", c->trial.spec);
	if (file_sync_dir(tmp, e) || link_swap(target, link, e))
		return -1;
	snprintf(tmp, sizeof tmp, "champion/%s", c->trial.spec);
	return file_sync_dir(tmp, e);
}
