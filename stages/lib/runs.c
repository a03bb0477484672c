/*
 * runs.c - see runs.h: making and finding runs. Repair is recover.c.
 *
 * SPDX-License-Identifier: MIT
 */
#include "runs_part.h"

#include "defence.h"
#include "file.h"
#include "gpu.h"
#include "json.h"
#include "jsonw.h"
#include "runner.h"
#include "tool.h"
#include "verdict.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SPEC_FILE_MAX = 64 << 20, SPEC_DEPTH = 4 };

/* Largest number among the entries of `dir` that `number` accepts; 0 when none. */
static int largest(const char *dir, long (*number)(const char *), long *out, struct err *e)
{
	*out = 0;
	DIR *d = opendir(dir);
	if (!d)
		return errno == ENOENT ? 0 : err_sys(e, "cannot list '%s'", dir);
	struct dirent *f;
	while ((f = readdir(d))) {
		long n = number(f->d_name);
		if (n > *out)
			*out = n;
	}
	closedir(d);
	return 0;
}

static long run_number(const char *name)
{
	return run_name_ok(name) ? strtol(name + 1, NULL, 10) : -1;
}

int runs_newest(char name[TRIAL_ID], struct err *e)
{
	long n;
	name[0] = '\0';
	if (largest("trials/runs", run_number, &n, e))
		return -1;
	if (n)
		snprintf(name, TRIAL_ID, "r%04u", (unsigned)n % 100000000u);
	return 0;
}

int runs_finished(const char *name)
{
	char path[TRIAL_PATH];
	run_path(path, name, "done.json");
	return file_exists(path);
}

int runs_finish(const char *name, const char *state, struct err *e)
{
	char path[TRIAL_PATH], now[32], text[160];
	verdict_now(now);
	run_path(path, name, "done.json");
	int n = snprintf(text, sizeof text, "{\"schema\":\"touchstone/done/1\",\"state\":\"%s\","
			 "\"t\":\"%s\"}\n", state, now);
	return file_write(path, text, (size_t)n, 0644, e);
}

/* The key is the first thing of a run that exists: nothing can be proposed before it does. */
static int make_key(const char *dir, char sha[HASH_HEX], struct err *e)
{
	char path[TRIAL_PATH];
	unsigned char key[32];
	if (getrandom(key, sizeof key, 0) != (ssize_t)sizeof key)
		return err_sys(e, "cannot draw a run key");
	if (!DEFENCE("key.run"))
		memset(key, 1, sizeof key);
	snprintf(path, sizeof path, "%.200s/key", dir);
	int rc = file_write(path, key, sizeof key, 0600, e);
	hash_hex(key, sizeof key, sha);
	explicit_bzero(key, sizeof key);
	return rc;
}

/* Copy a folder of plain files and note their hashes. Links and hidden files are left out. */
static int snapshot(const char *from, const char *to, const char *prefix, int depth,
		    struct jsonw *pins, struct err *e);

static int snapshot_one(const char *from, const char *to, const char *prefix, const char *name,
			int depth, struct jsonw *pins, struct err *e)
{
	char source[512], target[512], rel[256], sha[HASH_HEX];
	struct stat st;
	struct buf text = BUF_INIT;
	if (snprintf(source, sizeof source, "%s/%s", from, name) >= (int)sizeof source ||
	    snprintf(target, sizeof target, "%s/%s", to, name) >= (int)sizeof target ||
	    snprintf(rel, sizeof rel, "%s%s", prefix, name) >= 180)
		return err_set(e, EX_BADINPUT, "'%s' has too long a name", name);
	if (lstat(source, &st))
		return err_sys(e, "cannot look at '%s'", source);
	if (S_ISDIR(st.st_mode)) {
		strcat(rel, "/");
		return snapshot(source, target, rel, depth + 1, pins, e);
	}
	if (!S_ISREG(st.st_mode))
		return 0;
	int rc = file_read(source, SPEC_FILE_MAX, &text, e);
	if (!rc) {
		hash_hex(buf_str(&text), text.len, sha);
		jw_str(pins, rel, sha);
		rc = file_write(target, buf_str(&text), text.len, st.st_mode & 0777, e);
	}
	buf_free(&text);
	return rc;
}

static int snapshot(const char *from, const char *to, const char *prefix, int depth,
		    struct jsonw *pins, struct err *e)
{
	struct dirent **list;
	if (depth > SPEC_DEPTH)
		return err_set(e, EX_BADINPUT, "'%s' is nested too deep", from);
	if (dir_make(to, e))
		return -1;
	int n = scandir(from, &list, NULL, alphasort);
	if (n < 0)
		return err_sys(e, "cannot list '%s'", from);
	int rc = 0;
	for (int i = 0; i < n; i++) {
		if (!rc && list[i]->d_name[0] != '.')
			rc = snapshot_one(from, to, prefix, list[i]->d_name, depth, pins, e);
		free(list[i]);
	}
	free(list);
	return rc;
}

/* Hashes of all programs, by name, as members of the open object. */
static int put_tools(struct jsonw *w, const char *bin, struct err *e)
{
	struct dirent **list;
	char path[512], sha[HASH_HEX];
	int n = scandir(bin, &list, NULL, alphasort);
	if (n < 0)
		return err_sys(e, "cannot list '%s'", bin);
	int rc = 0;
	for (int i = 0; i < n; i++) {
		const char *name = list[i]->d_name;
		if (!rc && trial_name_ok(name)) {
			snprintf(path, sizeof path, "%.380s/%.100s", bin, name);
			rc = tool_hash(path, sha, e);
			if (!rc)
				jw_str(w, name, sha);
		}
		free(list[i]);
	}
	free(list);
	return rc;
}

static void put_settings(struct jsonw *w, const struct run_plan *p)
{
	jw_obj(w, "settings");
	jw_str(w, "spec", p->spec);
	jw_int(w, "n", p->n);
	jw_str(w, "device", p->device);
	jw_str(w, "proposer", p->proposer);
	jw_int(w, "width", p->width);
	jw_int(w, "seed", p->seed);
	jw_bool(w, "allow_weak", p->allow_weak);
	for (const cJSON *m = p->more ? p->more->child : NULL; m; m = m->next)
		jw_item(w, m->string, m);
	jw_end(w);
}

/* Files of the user's or of an earlier trial that this run is about. */
static int put_given(struct jsonw *w, const struct run_plan *p, const char *dir, struct err *e)
{
	char to[TRIAL_PATH], sha[HASH_HEX];
	jw_obj(w, "given");
	for (int i = 0; i < RUN_GIVEN && p->given[i][0]; i++) {
		const char *slash = strrchr(p->given[i][1], '/');
		snprintf(to, sizeof to, "%.100s/given/%.*s", dir, slash ? (int)(slash - p->given[i][1]) : 0, p->given[i][1]);
		if (dir_make(to, e))
			return -1;
		snprintf(to, sizeof to, "%.100s/given/%.80s", dir, p->given[i][1]);
		if (file_copy(p->given[i][0], to, e) || hash_file(to, sha, e))
			return -1;
		jw_str(w, p->given[i][1], sha);
	}
	jw_end(w);
	return 0;
}

/* device.json: the GPU here, or as the runner described its own. */
static int put_device(struct jsonw *w, const struct run_plan *p, const char *dir, struct err *e)
{
	char to[TRIAL_PATH], sha[HASH_HEX];
	int gpus = p->gpus;
	if (device_class_of(p->device) != DEVICE_CUDA)
		return 0;
	snprintf(to, sizeof to, "%.100s/device.json", dir);
	if (p->device_json) {
		hash_hex(buf_str(p->device_json), p->device_json->len, sha);
		if (file_write(to, buf_str(p->device_json), p->device_json->len, 0644, e))
			return -1;
	} else if (gpu_pin(dir, p->device, &gpus, sha, e)) {
		return -1;
	}
	jw_str(w, "device_sha256", sha);
	jw_int(w, "lanes", gpus < p->width ? gpus > 0 ? gpus : 1 : p->width);
	return 0;
}

static int put_pins(struct jsonw *w, const struct run_plan *p, const char *dir,
		    const char *key_sha, struct err *e)
{
	char from[TRIAL_PATH], to[TRIAL_PATH], sha[HASH_HEX];
	snprintf(from, sizeof from, "specs/%s", p->spec);
	snprintf(to, sizeof to, "%.100s/spec", dir);
	jw_str(w, "key_sha256", key_sha);
	if (put_device(w, p, dir, e))
		return -1;
	snprintf(from, sizeof from, "specs/%s/spec.json", p->spec);
	if (hash_file(from, sha, e))
		return -1;
	jw_str(w, "spec_sha256", sha);
	snprintf(from, sizeof from, "specs/%s", p->spec);
	jw_obj(w, "pins");
	jw_obj(w, "spec");
	if (snapshot(from, to, "", 0, w, e))
		return -1;
	jw_end(w);
	jw_obj(w, "tools");
	if (put_tools(w, p->bin, e))
		return -1;
	jw_end(w);
	jw_end(w);
	return put_given(w, p, dir, e);
}

static void put_first(struct jsonw *w, const struct run_plan *p, long first)
{
	char id[TRIAL_ID];
	trial_id(id, first);
	jw_str(w, "first_trial", id);
	if (p->origin)
		jw_item(w, "origin", p->origin);
	else
		jw_null(w, "origin");
}

/* Fill the folder; run.json last. */
static int build(const struct run_plan *p, const char *name, const char *dir, long first,
		 struct err *e)
{
	char path[TRIAL_PATH], key_sha[HASH_HEX], now[32];
	struct jsonw w = {.pretty = 1};
	if (dir_remove(dir, e) || dir_make(dir, e) || make_key(dir, key_sha, e))
		return -1;
	if ((p->run_gpu || p->run_unittest) && runner_save(dir, p->run_gpu ? p->run_gpu : "",
							   p->run_unittest ? p->run_unittest : "", e))
		return -1;
	verdict_now(now);
	jw_obj(&w, NULL);
	jw_str(&w, "schema", "touchstone/run/1");
	jw_str(&w, "run", name);
	jw_str(&w, "started", now);
	if (p->replay)
		jw_bool(&w, "replay", 1);
	put_settings(&w, p);
	put_first(&w, p, first);
	int rc = put_pins(&w, p, dir, key_sha, e) || runs_put_state(&w, p, e) ? -1 : 0;
	while (w.depth)
		jw_end(&w);
	buf_addc(&w.out, '\n');
	snprintf(path, sizeof path, "%.200s/run.json", dir);
	if (!rc)
		rc = file_write(path, w.out.data, w.out.len, 0644, e);
	jw_free(&w);
	return rc;
}

/* Claims are made in order, so the last claim and the last run's range bound what is taken. */
static int next_id(const char *newest, long *first, struct err *e)
{
	if (largest("trials", trial_number, first, e))
		return -1;
	struct run r;
	if (*newest && run_read(newest, &r, NULL) == 0) {
		if (r.first > 0 && r.first + (long)r.n - 1 > *first)
			*first = r.first + (long)r.n - 1;
		run_free(&r);
	}
	++*first;
	return 0;
}

int runs_make(const struct run_plan *p, char name[TRIAL_ID], struct err *e)
{
	char newest[TRIAL_ID], dir[TRIAL_PATH], tmp[TRIAL_PATH + 16];
	long first;
	if (runs_newest(newest, e) || next_id(newest, &first, e))
		return -1;
	unsigned number = *newest ? (unsigned)run_number(newest) + 1 : 1;
	snprintf(name, TRIAL_ID, "r%04u", number % 100000000u);
	run_path(dir, name, "");
	snprintf(tmp, sizeof tmp, "trials/runs/.new.tmp.%ld", (long)getpid());
	if (dir_make("trials/runs", e) || build(p, name, tmp, first, e))
		return -1;
	if (rename(tmp, dir))
		return err_sys(e, "cannot rename '%s' to '%s'", tmp, dir);
	return file_sync_dir("trials/runs", e) || file_sync_dir("trials", e) ? -1 : 0;
}

static void put_id(struct jsonw *w, const char *key, const struct run *r, int64_t i)
{
	char id[TRIAL_ID];
	jw_str(w, key, run_trial(r, i, id) ? NULL : id);
}

static void put_claim(struct jsonw *w, const struct run *r, int64_t i)
{
	const cJSON *origin = json_get(r->json, "origin");
	jw_obj(w, NULL);
	jw_str(w, "schema", "touchstone/trial/1");
	put_id(w, "trial", r, i);
	jw_str(w, "run", r->name);
	jw_str(w, "spec", r->spec);
	jw_str(w, "device", r->device);
	jw_int(w, "index", i);
	put_id(w, "sees", r, i - r->width);
	put_id(w, "timed_after", r, i - r->lanes);
	put_id(w, "previous", r, i - 1);
	if (origin)
		jw_item(w, "origin", origin);
	else
		jw_null(w, "origin");
	jw_end(w);
	buf_addc(&w->out, '\n');
}

/* Whole, but not synced: a claim is a function of run.json and is made again when it is lost. */
static int write_claim(const char *path, const struct buf *text, struct err *e)
{
	char tmp[TRIAL_PATH + 32];
	snprintf(tmp, sizeof tmp, "%s.tmp.%ld", path, (long)getpid());
	int fd = open(tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0)
		return err_sys(e, "cannot create '%s'", tmp);
	int bad = write(fd, text->data, text->len) != (ssize_t)text->len;
	if (close(fd) || bad || rename(tmp, path)) {
		unlink(tmp);
		return err_sys(e, "cannot write '%s'", path);
	}
	return 0;
}

static int claim(const struct run *r, int64_t i, struct err *e)
{
	char path[TRIAL_PATH], to[TRIAL_PATH], id[TRIAL_ID];
	struct trial t;
	if (run_trial(r, i, id))
		return err_set(e, EX_BADINPUT, "run %s names no usable first trial", r->name);
	if (trial_read(id, &t, NULL) == 0) {
		trial_free(&t);
		return 0;
	}
	trial_path(path, id, "");
	if (dir_make(path, e))
		return -1;
	trial_path(path, id, "spec");
	snprintf(to, sizeof to, "../runs/%s/spec", r->name);
	if (link_swap(to, path, e))
		return -1;
	struct jsonw w = {.pretty = 1};
	put_claim(&w, r, i);
	trial_path(path, id, "trial.json");
	int rc = write_claim(path, &w.out, e);
	jw_free(&w);
	return rc;
}

static int write_graph(const struct run *r, struct err *e)
{
	char path[TRIAL_PATH], id[TRIAL_ID];
	struct buf b = BUF_INIT;
	buf_adds(&b, "# made by iterate for tools/make/trials.mk\nTS_IDS :=");
	for (int64_t i = 0; run_trial(r, i, id) == 0; i++)
		buf_addf(&b, " %s", id);
	buf_addf(&b, "\nTS_W := %lld\nTS_G := %lld\n", (long long)r->width, (long long)r->lanes);
	run_path(path, r->name, "ids.mk");
	int rc = file_write(path, b.data, b.len, 0644, e);
	buf_free(&b);
	return rc;
}

int runs_claim(const struct run *r, struct err *e)
{
	for (int64_t i = 0; i < r->n; i++)
		if (claim(r, i, e))
			return -1;
	return file_sync_dir("trials", e) ? -1 : write_graph(r, e);
}

int runs_pin_tools(const struct run *r, const char *bin, struct err *e)
{
	struct jsonw w = {0};
	char now[32], path[TRIAL_PATH];
	int fresh = 0;
	verdict_now(now);
	jw_obj(&w, NULL);
	jw_str(&w, "t", now);
	jw_obj(&w, "tools");
	int rc = put_tools(&w, bin, e);
	jw_end(&w);
	jw_end(&w);
	cJSON *j = rc ? NULL : json_parse(w.out.data, w.out.len, &JSON_OURS, "pins", e);
	const cJSON *tools = j ? json_get(j, "tools") : NULL;
	for (const cJSON *t = tools ? tools->child : NULL; t && !rc; t = t->next) {
		int ok = run_tool_ok(r, t->string, t->valuestring, e);
		rc = ok < 0 ? -1 : 0;
		fresh |= ok == 0;
	}
	cJSON_Delete(j);
	run_path(path, r->name, "pins.jsonl");
	if (!rc && fresh)
		rc = file_append(path, w.out.data, e);
	jw_free(&w);
	return rc ? -1 : fresh;
}

int runs_closed(const struct run *r, char next[TRIAL_ID])
{
	char path[TRIAL_PATH], id[TRIAL_ID];
	int n = 0;
	next[0] = '\0';
	for (int64_t i = 0; run_trial(r, i, id) == 0; i++) {
		trial_step_path(path, id, STEP_PROMOTE);
		if (file_exists(path))
			n++;
		else if (!*next)
			memcpy(next, id, TRIAL_ID);
	}
	return n;
}
