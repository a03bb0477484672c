/*
 * box_cache.c - see box_part.h. Results of the box kept by the hash of everything that went in.
 *
 * An entry is KEY.json (the result, with the artefact's hash) and KEY.img (and KEY.ptx), written first. What
 * is found is checked against that hash, so a torn or touched entry is merely compiled again.
 *
 * SPDX-License-Identifier: MIT
 */
#include "box_part.h"

#include "defence.h"
#include "file.h"
#include "jsonw.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ENTRIES_MAX = 1000 };

/* Which compiler this is, without running it: asking would cost more than the lookup, and a
 * new version never has its file's size and time. */
static int tool_id(const char *name, struct buf *b, struct err *e)
{
	char path[PATH_MAX], real[PATH_MAX];
	struct stat st;
	snprintf(path, sizeof path, "/usr/bin/%s", name);
	if (!realpath(path, real) || stat(real, &st))
		return err_set(e, EX_NOENV, "cannot find the compiler '%s': install g++ and binutils", path);
	buf_addf(b, "%s %lld %lld.%ld\n", real, (long long)st.st_size, (long long)st.st_mtim.tv_sec,
		 st.st_mtim.tv_nsec);
	return 0;
}

static int emu_tools(struct buf *b, struct err *e)
{
	return tool_id("g++", b, e) || tool_id("as", b, e) || tool_id("ld", b, e) ? -1 : 0;
}

int box_entry_key(const struct box_request *q, const struct box_kit *k, const struct toolkit *t, const char *box,
		  struct box_entry *c, struct err *e)
{
	struct buf b = BUF_INIT;
	char sha[HASH_HEX], layers[CONFINE_LIST];
	int rc = hash_file(box, sha, e);
	/* what was compiled when less isolation was to be had is not for a run that has it */
	confine_offers(layers);
	buf_addf(&b, "box/1 %s %s fast_math=%d %s\n", q->mode, sha, q->fast_math != 0, layers);
	hash_hex(q->source, q->source_len, sha);
	int own = strncmp(q->mode, BOX_RUNTIME, sizeof BOX_RUNTIME - 1) == 0;
	buf_addf(&b, "%s\n%s\n%s\n", sha, k->sha, own ? "" : DEFENCES_OFF);
	for (size_t i = 0; i < q->entry_count; i++)
		buf_addf(&b, "entry %s\n", q->entries[i]);
	for (size_t i = 0; i < q->macro_count; i++)
		buf_addf(&b, "%s=%lld\n", q->macros[i].name, (long long)q->macros[i].value);
#ifdef TS_ZOO
	/* gated by other rules */
	buf_addf(&b, "off %s\n", getenv("TS_OFF") ? getenv("TS_OFF") : "");
#endif
	if (rc == 0)
		rc = t ? box_cuda_key(q, t, &b, e) : emu_tools(&b, e);
	hash_hex(b.data, b.len, c->key);
	buf_free(&b);
	snprintf(c->dir, sizeof c->dir, "%s", box);
	char *slash = strrchr(c->dir, '/');
	size_t at = slash ? (size_t)(slash - c->dir) : 0;
	snprintf(c->dir + at, sizeof c->dir - at, "/../cache/%s", t ? "cuda" : "emu");
	return rc;
}

static void entry_path(const struct box_entry *c, const char *suffix, char out[PATH_MAX])
{
	if (snprintf(out, PATH_MAX, "%s/%s%s", c->dir, c->key, suffix) >= PATH_MAX)
		out[0] = '\0';
}

void box_entry_paths(const struct box_entry *c, struct box_result *r)
{
	if (!r->ok)
		return;
	entry_path(c, ".img", r->path);
	if (r->ptx_sha256[0])
		entry_path(c, ".ptx", r->ptx);
}

/* A file of the entry whose hash is `want`. */
static int part_get(const struct box_entry *c, const char *suffix, const char *want, struct buf *out)
{
	char path[PATH_MAX], sha[HASH_HEX] = "";
	struct err e;
	entry_path(c, suffix, path);
	if (file_read(path, BOX_ARTEFACT_MAX, out, &e))
		return 0;
	hash_hex(out->data, out->len, sha);
	return strcmp(sha, want) == 0;
}

int box_entry_get(const struct box_entry *c, struct box_result *r, struct box_made *m)
{
	char path[PATH_MAX];
	struct buf text = BUF_INIT;
	struct err e;
	int found = 0;
	entry_path(c, ".json", path);
	if (file_read(path, BOX_RESULT_MAX, &text, &e) == 0 &&
	    box_result_parse(text.data, text.len, path, r, &e) == 0) {
		found = !r->ok || (part_get(c, ".img", r->sha256, &m->artefact) &&
				   (!r->ptx_sha256[0] || part_get(c, ".ptx", r->ptx_sha256, &m->ptx)));
		box_entry_paths(c, r);
		r->cached = 1;
		utimensat(AT_FDCWD, path, NULL, 0); /* used now: the oldest go first */
		if (!found)
			box_result_free(r);
	}
	buf_free(&text);
	return found;
}

struct aged {
	char name[HASH_HEX];
	time_t used;
};

static int by_age(const void *a, const void *b)
{
	time_t x = ((const struct aged *)a)->used, y = ((const struct aged *)b)->used;
	return x < y ? -1 : x > y;
}

/* Tuning makes hundreds of images: when there are too many, the quarter not used for longest goes. */
static void prune(const struct box_entry *c)
{
	struct aged *all = NULL;
	size_t n = 0;
	DIR *d = opendir(c->dir);
	for (struct dirent *x; d && (x = readdir(d));) {
		char path[PATH_MAX];
		struct stat st;
		if (strlen(x->d_name) != 64 + 5 || strcmp(x->d_name + 64, ".json") != 0 ||
		    snprintf(path, sizeof path, "%s/%s", c->dir, x->d_name) >= PATH_MAX || stat(path, &st))
			continue;
		all = xrealloc(all, (n + 1) * sizeof *all);
		snprintf(all[n].name, sizeof all[n].name, "%.64s", x->d_name);
		all[n++].used = st.st_mtime;
	}
	if (d)
		closedir(d);
	if (n > ENTRIES_MAX)
		qsort(all, n, sizeof *all, by_age);
	for (size_t i = 0; n > ENTRIES_MAX && i < n / 4; i++) {
		struct box_entry old = *c;
		char path[PATH_MAX];
		memcpy(old.key, all[i].name, sizeof old.key);
		entry_path(&old, ".json", path);
		unlink(path);
		entry_path(&old, ".img", path);
		unlink(path);
		entry_path(&old, ".ptx", path);
		unlink(path);
	}
	free(all);
}

int box_entry_put(const struct box_entry *c, const struct box_result *r, const struct box_made *m,
		  struct err *e)
{
	char path[PATH_MAX];
	struct buf text = BUF_INIT;
	if (dir_make(c->dir, e))
		return -1;
	prune(c);
	entry_path(c, ".img", path);
	if (r->ok && file_write(path, m->artefact.data, m->artefact.len, 0644, e))
		return -1;
	entry_path(c, ".ptx", path);
	if (r->ok && r->ptx_sha256[0] && file_write(path, m->ptx.data, m->ptx.len, 0644, e))
		return -1;
	box_result_json(r, &text);
	entry_path(c, ".json", path);
	int rc = file_write(path, text.data, text.len, 0644, e);
	buf_free(&text);
	return rc;
}

/* --- JSON --- */

void box_result_json(const struct box_result *r, struct buf *out)
{
	struct jsonw w = {0};
	jw_obj(&w, NULL);
	jw_str(&w, "schema", "touchstone/box/1");
	jw_bool(&w, "ok", r->ok);
	jw_str(&w, "code", r->code);
	jw_str(&w, "message", r->message);
	jw_str(&w, "sha256", r->sha256);
	jw_str(&w, "ptx_sha256", r->ptx_sha256);
	jw_str(&w, "compiler", r->compiler);
	jw_num(&w, "seconds", r->seconds);
	jw_str(&w, "isolation", r->isolation);
	jw_str(&w, "log", r->log);
	if (r->facts)
		jw_item(&w, "facts", r->facts);
	else
		jw_null(&w, "facts");
	jw_end(&w);
	buf_add(out, w.out.data, w.out.len);
	jw_free(&w);
}

static int text_get(const cJSON *o, const char *key, char *out, size_t size, const char *what,
		    struct err *e)
{
	const char *s = json_str(o, key, what, e);
	if (!s)
		return -1;
	snprintf(out, size, "%s", s);
	return 0;
}

int box_result_parse(const char *text, size_t len, const char *what, struct box_result *r,
		     struct err *e)
{
	const struct json_limits lim = {.bytes = BOX_RESULT_MAX, .depth = 8};
	memset(r, 0, sizeof *r);
	cJSON *o = json_parse(text, len, &lim, what, e);
	if (!o)
		return -1;
	int rc = json_bool(o, "ok", &r->ok, what, e) || json_num(o, "seconds", &r->seconds, what, e) ||
		 text_get(o, "code", r->code, sizeof r->code, what, e) ||
		 text_get(o, "message", r->message, sizeof r->message, what, e) ||
		 text_get(o, "sha256", r->sha256, sizeof r->sha256, what, e) ||
		 text_get(o, "ptx_sha256", r->ptx_sha256, sizeof r->ptx_sha256, what, e) ||
		 text_get(o, "compiler", r->compiler, sizeof r->compiler, what, e) ||
		 text_get(o, "isolation", r->isolation, sizeof r->isolation, what, e) ||
		 text_get(o, "log", r->log, sizeof r->log, what, e);
	cJSON *facts = cJSON_DetachItemFromObjectCaseSensitive(o, "facts");
	if (facts && !cJSON_IsNull(facts))
		r->facts = facts;
	else
		cJSON_Delete(facts);
	cJSON_Delete(o);
	if (rc)
		box_result_free(r);
	return rc ? -1 : 0;
}
