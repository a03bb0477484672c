/*
 * box_kit.c - see box_part.h. What of ours goes into a compile, and the scrubbing of its log.
 *
 * SPDX-License-Identifier: MIT
 */
#include "box_part.h"

#include "file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DEPTH_MAX = 4, FILES_MAX = 512, FILE_BYTES_MAX = 32 << 20 };

static int kit_add(struct box_kit *k, const char *path, const char *name, int run, struct err *e)
{
	if (k->count == FILES_MAX)
		return err_set(e, EX_HARNESS, "too many files in the emulation tree");
	k->file = xrealloc(k->file, (k->count + 1) * sizeof *k->file);
	struct box_kit_file *f = &k->file[k->count];
	memset(f, 0, sizeof *f);
	if (file_read(path, FILE_BYTES_MAX, &f->data, e))
		return -1;
	f->name = xstrdup(name);
	f->run = run;
	k->count++;
	return 0;
}

/* Headers and run time; what the tree has besides (README, tests) is of no use to a compile. */
static int wanted(const char *name, int depth)
{
	size_t n = strlen(name);
	if (name[0] == '.')
		return 0;
	return depth > 0 || (n > 2 && strcmp(name + n - 2, ".h") == 0);
}

static int tree_add(struct box_kit *k, const char *root, const char *rel, int depth, struct err *e)
{
	char path[PATH_MAX], name[PATH_MAX];
	snprintf(path, sizeof path, "%s%s%s", root, *rel ? "/" : "", rel);
	DIR *d = opendir(path);
	if (!d)
		return err_sys(e, "cannot read the folder '%s'", path);
	int rc = 0;
	for (struct dirent *x; rc == 0 && (x = readdir(d));) {
		struct stat st;
		if (snprintf(name, sizeof name, "%s%s%s", rel, *rel ? "/" : "", x->d_name) >= PATH_MAX ||
		    snprintf(path, sizeof path, "%s/%s", root, name) >= PATH_MAX)
			continue;
		if (x->d_name[0] == '.' || lstat(path, &st))
			continue;
		if (S_ISDIR(st.st_mode) && depth < DEPTH_MAX)
			rc = tree_add(k, root, name, depth + 1, e);
		else if (S_ISREG(st.st_mode) && wanted(x->d_name, depth))
			rc = kit_add(k, path, name, 0, e);
	}
	closedir(d);
	return rc;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct box_kit_file *)a)->name, ((const struct box_kit_file *)b)->name);
}

static void kit_hash(struct box_kit *k)
{
	struct buf all = BUF_INIT;
	for (size_t i = 0; i < k->count; i++) {
		char sha[HASH_HEX];
		hash_hex(k->file[i].data.data, k->file[i].data.len, sha);
		buf_addf(&all, "%s %s\n", sha, k->file[i].name);
	}
	hash_hex(all.data, all.len, k->sha);
	buf_free(&all);
}

/* The box lies in .build/bin (or a test's build folder one deeper); the tree in stages/emu. */
int box_kit_read(const char *box, struct box_kit *k, struct err *e)
{
	static const char *const up[] = {"/../../stages/emu", "/../../../stages/emu"};
	char dir[PATH_MAX], root[PATH_MAX], tool[PATH_MAX];
	memset(k, 0, sizeof *k);
	snprintf(dir, sizeof dir, "%s", box);
	char *slash = strrchr(dir, '/');
	if (slash)
		*slash = '\0';
	for (size_t i = 0; i < sizeof up / sizeof *up; i++) {
		if (snprintf(root, sizeof root, "%s%s", dir, up[i]) >= PATH_MAX || access(root, R_OK))
			continue;
		int rc = tree_add(k, root, "", 0, e);
		if (rc == 0 && snprintf(tool, sizeof tool, "%s/elfscan", dir) < PATH_MAX &&
		    access(tool, X_OK) == 0)
			rc = kit_add(k, tool, "elfscan", 1, e);
		if (rc)
			return -1;
		qsort(k->file, k->count, sizeof *k->file, by_name);
		kit_hash(k);
		return 0;
	}
	return err_set(e, EX_NOENV, "cannot find stages/emu near '%s'", box);
}

/* A compile for a GPU runs the box a second time, in its own view. */
int box_kit_cuda(const char *box, struct box_kit *k, struct err *e)
{
	memset(k, 0, sizeof *k);
	if (kit_add(k, box, "box", 1, e))
		return -1;
	kit_hash(k);
	return 0;
}

/* Plain writes: the folder lives as long as one compile. */
static int one_write(const char *path, const struct box_kit_file *f, struct err *e)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, f->run ? 0755 : 0644);
	if (fd < 0)
		return err_sys(e, "cannot create '%s'", path);
	size_t done = 0;
	while (done < f->data.len) {
		ssize_t n = write(fd, f->data.data + done, f->data.len - done);
		if (n <= 0)
			break;
		done += (size_t)n;
	}
	int rc = done == f->data.len ? 0 : err_sys(e, "cannot write '%s'", path);
	fchmod(fd, f->run ? 0755 : 0644); /* whatever the umask: the box may be another user */
	close(fd);
	return rc;
}

int box_kit_write(const struct box_kit *k, const char *dir, struct err *e)
{
	char path[PATH_MAX];
	for (size_t i = 0; i < k->count; i++) {
		if (snprintf(path, sizeof path, "%s/%s", dir, k->file[i].name) >= PATH_MAX)
			return err_set(e, EX_HARNESS, "path too long: '%s'", k->file[i].name);
		for (char *s = strchr(path + strlen(dir) + 1, '/'); s; s = strchr(s + 1, '/')) {
			*s = '\0';
			if (mkdir(path, 0755) && errno != EEXIST)
				return err_sys(e, "cannot make '%s'", path);
			chmod(path, 0755);
			*s = '/';
		}
		if (one_write(path, &k->file[i], e))
			return -1;
	}
	return 0;
}

void box_kit_add(struct box_kit *k, const char *name, const struct buf *data)
{
	k->file = xrealloc(k->file, (k->count + 1) * sizeof *k->file);
	struct box_kit_file *f = &k->file[k->count++];
	memset(f, 0, sizeof *f);
	f->name = xstrdup(name);
	buf_add(&f->data, data->data, data->len);
}

void box_kit_free(struct box_kit *k)
{
	for (size_t i = 0; i < k->count; i++) {
		free(k->file[i].name);
		buf_free(&k->file[i].data);
	}
	free(k->file);
	memset(k, 0, sizeof *k);
}

/* --- log --- */

static int path_char(int c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       strchr("/._+-~", c) != NULL;
}

/* The part of the path at `s` (`n` bytes) that may be told: its last name. A lone slash or a
 * single name is a division or a fraction in an echoed line. */
static size_t path_skip(const char *s, size_t n)
{
	size_t slashes = 0, last = 0;
	for (size_t i = 0; i < n; i++)
		if (s[i] == '/') {
			slashes++;
			last = i + 1;
		}
	return slashes > 1 && last < n ? last : 0;
}

void box_log_scrub(const char *text, size_t len, char log[BOX_LOG_MAX + 1])
{
	size_t out = 0;
	for (size_t i = 0; i < len && out < BOX_LOG_MAX;) {
		int c = (unsigned char)text[i];
		if (c == '\r') {
			i++;
		} else if (c && path_char(c)) {
			size_t n = 1;
			while (i + n < len && text[i + n] && path_char((unsigned char)text[i + n]))
				n++;
			size_t skip = path_skip(text + i, n);
			size_t keep = n - skip < BOX_LOG_MAX - out ? n - skip : BOX_LOG_MAX - out;
			memcpy(log + out, text + i + skip, keep);
			out += keep;
			i += n;
		} else {
			log[out++] = c == '\n' || c == '\t' || (c >= 0x20 && c < 0x7f) ? (char)c : '?';
			i++;
		}
	}
	log[out] = '\0';
}
