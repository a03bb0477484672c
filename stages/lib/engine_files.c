/*
 * engine_files.c - see engine_files.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "engine_files.h"

#include "file.h"
#include "json.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { FILE_MOST = 4 << 20 };

const char *engine_main(int cuda)
{
	return cuda ? "engine.cu" : "engine.c";
}

int engine_file_of(const char *name, int cuda)
{
	static const char SET[] = "abcdefghijklmnopqrstuvwxyz0123456789_";
	static const char *const TAIL[2][3] = {{".c", ".h", NULL}, {".cu", ".cuh", ".h"}};
	if (strcmp(name, engine_main(cuda)) == 0)
		return 1;
	if (strncmp(name, "kernels/", 8) != 0 || strlen(name) >= ENGINE_FILE_NAME)
		return 0;
	const size_t n = strspn(name + 8, SET);
	for (int i = 0; i < 3 && n > 0; i++)
		if (TAIL[!!cuda][i] && strcmp(name + 8 + n, TAIL[!!cuda][i]) == 0)
			return 1;
	return 0;
}

int engine_file_name_ok(const char *name)
{
	return engine_file_of(name, 0) || engine_file_of(name, 1);
}

void engine_files_free(struct engine_files *f)
{
	for (int i = 0; i < f->n; i++)
		buf_free(&f->file[i].text);
	memset(f, 0, sizeof *f);
}

static int place_of(const struct engine_files *f, const char *name)
{
	for (int i = 0; i < f->n; i++)
		if (strcmp(f->file[i].name, name) == 0)
			return i;
	return -1;
}

struct buf *engine_files_find(struct engine_files *f, const char *name)
{
	const int i = place_of(f, name);
	return i < 0 ? NULL : &f->file[i].text;
}

/* A new entry to be filled. `where` is for people. */
static struct engine_file *add(struct engine_files *f, const char *where, const char *name, struct err *e)
{
	if (!engine_file_name_ok(name)) {
		err_set(e, EX_BADINPUT, "'%.200s/%.80s' is no file of an engine: engine.c or engine.cu, kernels/NAME.c, .h, .cu, .cuh alone", where, name);
		return NULL;
	}
	if (f->n == ENGINE_FILES) {
		err_set(e, EX_BADINPUT, "'%.200s' has more than %d files", where, ENGINE_FILES);
		return NULL;
	}
	struct engine_file *x = &f->file[f->n++];
	memset(x, 0, sizeof *x);
	snprintf(x->name, sizeof x->name, "%s", name);
	return x;
}

/* One engine.c or engine.cu, and no file of the other language beside it. */
static int whole(const struct engine_files *f, const char *where, struct err *e)
{
	const int cuda = engine_files_cuda(f);
	if (place_of(f, engine_main(cuda)) < 0)
		return err_set(e, EX_BADINPUT, "'%.200s' has no engine.c and no engine.cu", where);
	for (int i = 0; i < f->n; i++)
		if (!engine_file_of(f->file[i].name, cuda))
			return err_set(e, EX_BADINPUT, "'%.200s/%.80s' is no file beside %s", where, f->file[i].name,
				       engine_main(cuda));
	return 0;
}

int engine_files_cuda(const struct engine_files *f)
{
	for (int i = 0; i < f->n; i++)
		if (strcmp(f->file[i].name, engine_main(1)) == 0)
			return 1;
	return 0;
}

/* Sorted, and with a hash; -1 and empty when rc is not 0 or they are no whole engine. */
static int done(struct engine_files *f, const char *where, int rc, struct err *e)
{
	if (rc == 0)
		rc = whole(f, where, e);
	if (rc == 0)
		engine_files_sha(f->file, f->n, f->sha);
	else
		engine_files_free(f);
	return rc ? -1 : 0;
}

static int read_folder(const char *dir, const char *sub, struct engine_files *f, struct err *e)
{
	char *at = xasprintf("%s/%s", dir, sub);
	struct dirent *entry;
	int rc = 0;
	DIR *d = opendir(at);
	if (!d)
		rc = err_sys(e, "cannot open folder '%s'", at);
	while (!rc && (entry = readdir(d))) {
		struct stat st;
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		char *path = xasprintf("%s%s", at, entry->d_name), *name = xasprintf("%s%s", sub, entry->d_name);
		struct engine_file *x = NULL;
		if (lstat(path, &st))
			rc = err_sys(e, "cannot look at '%s'", path);
		else if (!*sub && S_ISDIR(st.st_mode) && !strcmp(entry->d_name, "kernels"))
			rc = read_folder(dir, "kernels/", f, e);
		else if (!S_ISREG(st.st_mode))
			rc = err_set(e, EX_BADINPUT, "'%s' is no plain file", path);
		else if (!(x = add(f, dir, name, e)))
			rc = -1;
		else
			rc = file_read(path, FILE_MOST, &x->text, e);
		free(path);
		free(name);
	}
	if (d)
		closedir(d);
	free(at);
	return rc;
}

int engine_files_folder(const char *dir, struct engine_files *f, struct err *e)
{
	memset(f, 0, sizeof *f);
	return done(f, dir, read_folder(dir, "", f, e), e);
}

int engine_files_recorded(struct stage *s, const char *dir, struct engine_files *f, struct err *e)
{
	char prefix[32];
	const cJSON *outputs;
	int rc = 0;
	memset(f, 0, sizeof *f);
	snprintf(prefix, sizeof prefix, "%.8s%scandidate/", dir, *dir ? "/" : "");
	if (!(outputs = stage_candidate_outputs(s, prefix, e)))
		return -1;
	for (const cJSON *o = outputs->child; o && rc == 0; o = o->next) {
		if (strncmp(o->string, prefix, strlen(prefix)) != 0)
			continue;
		struct engine_file *x = add(f, prefix, o->string + strlen(prefix), e);
		rc = x ? stage_use(s, NULL, o->string, o->valuestring, FILE_MOST, &x->text, e) : -1;
	}
	return done(f, prefix, rc, e);
}

int engine_files_stage(struct stage *s, struct engine_files *f, struct err *e)
{
	if (engine_files_recorded(s, stage_candidate_dir(s), f, e))
		return -1;
	verdict_input(&s->v, "candidate", f->sha);
	return 0;
}

int engine_files_spec(struct stage *s, const char *folder, struct engine_files *f, struct err *e)
{
	const cJSON *pins = json_get(json_get(s->run.json, "pins"), "spec");
	const size_t len = strlen(folder);
	int rc = 0;
	memset(f, 0, sizeof *f);
	for (const cJSON *p = pins ? pins->child : NULL; p && rc == 0; p = p->next) {
		const char *name = p->string + len + 1;
		if (strncmp(p->string, folder, len) != 0 || p->string[len] != '/' || !strcmp(name, "README.md"))
			continue;
		struct engine_file *x = add(f, folder, name, e);
		rc = x ? stage_spec(s, NULL, p->string, FILE_MOST, &x->text, e) : -1;
	}
	return done(f, folder, rc, e);
}

void engine_files_copy(const struct engine_files *from, struct engine_files *to)
{
	memset(to, 0, sizeof *to);
	for (int i = 0; i < from->n; i++)
		engine_files_put(to, from->file[i].name, &from->file[i].text);
	engine_files_sha(to->file, to->n, to->sha);
}

int engine_files_put(struct engine_files *f, const char *name, const struct buf *text)
{
	int i = place_of(f, name);
	if (i < 0 && f->n == ENGINE_FILES)
		return -1;
	if (i < 0) {
		i = f->n++;
		memset(&f->file[i], 0, sizeof f->file[i]);
		snprintf(f->file[i].name, sizeof f->file[i].name, "%s", name);
	}
	buf_clear(&f->file[i].text);
	buf_add(&f->file[i].text, buf_str(text), text->len);
	return 0;
}

void engine_files_drop(struct engine_files *f, const char *name)
{
	const int i = place_of(f, name);
	if (i < 0)
		return;
	buf_free(&f->file[i].text);
	memmove(&f->file[i], &f->file[i + 1], (size_t)(f->n - i - 1) * sizeof f->file[i]);
	f->n--;
}

int engine_files_side(struct stage *s, const char *prefix, const struct engine_files *f, struct err *e)
{
	char file[TRIAL_PATH], path[TRIAL_PATH];
	snprintf(file, sizeof file, "%.32s/kernels", prefix);
	trial_path(path, s->id, f->n > 1 ? file : prefix);
	if (dir_make(path, e))
		return -1;
	for (int i = 0; i < f->n; i++) {
		snprintf(file, sizeof file, "%.32s/%s", prefix, f->file[i].name);
		if (stage_side(s, file, buf_str(&f->file[i].text), f->file[i].text.len, e))
			return -1;
	}
	return 0;
}

int engine_files_write(const char *dir, const struct engine_files *f, struct err *e)
{
	char *sub = xasprintf("%s%s", dir, f->n > 1 ? "/kernels" : "");
	int rc = dir_make(sub, e);
	for (int i = 0; i < f->n && rc == 0; i++) {
		char *path = xasprintf("%s/%s", dir, f->file[i].name);
		rc = file_write(path, buf_str(&f->file[i].text), f->file[i].text.len, 0644, e);
		free(path);
	}
	free(sub);
	return rc;
}
