/*
 * spec_files.c - which files make up a spec, and their common hash.
 *
 * Everything below the folder counts, except names that start with a dot or end in '~': what is
 * there may be compiled, shown to a model or read by the oracle. At most 256 files, 16 MiB each.
 *
 * SPDX-License-Identifier: MIT
 */
#include "spec.h"

#include "buf.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MAX_FILES 256
#define MAX_DEPTH 4
#define MAX_BYTES (16 << 20)

static int add_file(const char *path, const char *name, struct spec_files *out, struct err *e)
{
	if (out->n == MAX_FILES)
		return err_set(e, EX_BADINPUT, "%s: a spec has at most %d files", path, MAX_FILES);
	out->file = xrealloc(out->file, (size_t)(out->n + 1) * sizeof *out->file);
	struct spec_file *f = &out->file[out->n];
	if (hash_file(path, f->sha, e))
		return -1;
	f->name = xstrdup(name);
	out->n++;
	return 0;
}

static int list_dir(const char *dir, const char *prefix, int depth, struct spec_files *out, struct err *e);

static int list_one(const char *dir, const char *prefix, const char *entry, int depth, struct spec_files *out,
		    struct err *e)
{
	struct stat st;
	char *path = xasprintf("%s/%s", dir, entry), *name = xasprintf("%s%s", prefix, entry);
	int rc = 0;
	if (lstat(path, &st))
		rc = err_sys(e, "cannot look at '%s'", path);
	else if (S_ISDIR(st.st_mode) && depth < MAX_DEPTH) {
		char *below = xasprintf("%s/", name);
		rc = list_dir(path, below, depth + 1, out, e);
		free(below);
	} else if (!S_ISREG(st.st_mode))
		rc = err_set(e, EX_BADINPUT, "%s: neither a file nor a folder (at most %d deep)", path, MAX_DEPTH);
	else if (st.st_size > MAX_BYTES)
		rc = err_set(e, EX_BADINPUT, "%s: larger than %d bytes", path, MAX_BYTES);
	else
		rc = add_file(path, name, out, e);
	free(path);
	free(name);
	return rc;
}

static int list_dir(const char *dir, const char *prefix, int depth, struct spec_files *out, struct err *e)
{
	DIR *d = opendir(dir);
	struct dirent *entry;
	int rc = 0;
	if (!d)
		return err_sys(e, "cannot open folder '%s'", dir);
	while (!rc && (entry = readdir(d))) {
		size_t n = strlen(entry->d_name);
		if (entry->d_name[0] == '.' || entry->d_name[n - 1] == '~')
			continue;
		rc = list_one(dir, prefix, entry->d_name, depth, out, e);
	}
	closedir(d);
	return rc;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct spec_file *)a)->name, ((const struct spec_file *)b)->name);
}

int spec_files_list(const char *dir, struct spec_files *out, struct err *e)
{
	*out = (struct spec_files){0, NULL};
	if (list_dir(dir, "", 0, out, e)) {
		spec_files_free(out);
		return -1;
	}
	if (out->n)
		qsort(out->file, (size_t)out->n, sizeof *out->file, by_name);
	return 0;
}

void spec_files_free(struct spec_files *f)
{
	for (int i = 0; i < f->n; i++)
		free(f->file[i].name);
	free(f->file);
	*f = (struct spec_files){0, NULL};
}

void spec_files_sha(const struct spec_files *f, char out[HASH_HEX])
{
	struct buf all = BUF_INIT;
	for (int i = 0; i < f->n; i++) {
		buf_add(&all, f->file[i].name, strlen(f->file[i].name) + 1);
		buf_addf(&all, "%s\n", f->file[i].sha);
	}
	hash_hex(buf_str(&all), all.len, out);
	buf_free(&all);
}

int spec_sha256(const char *dir, char out[HASH_HEX], struct err *e)
{
	struct spec_files f;
	if (spec_files_list(dir, &f, e))
		return -1;
	spec_files_sha(&f, out);
	spec_files_free(&f);
	return 0;
}
