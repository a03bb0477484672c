/*
 * safetensors.c - see safetensors.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "safetensors.h"

#include "buf.h"
#include "json.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct json_limits HEADER = {.bytes = SAFETENSORS_HEADER, .depth = 4};

static enum dtype dtype_of(const char *name)
{
	static const struct {
		const char *name;
		enum dtype t;
	} KNOWN[] = {{"BF16", DT_BF16}, {"F16", DT_F16}, {"F32", DT_F32}, {"F64", DT_F64},
		     {"F8_E4M3", DT_E4M3}, {"F8_E5M2", DT_E5M2}, {"I64", DT_I64}, {"I32", DT_I32},
		     {"I16", DT_I16}, {"I8", DT_I8}, {"U64", DT_U64}, {"U32", DT_U32}, {"U16", DT_U16},
		     {"U8", DT_U8}, {"BOOL", DT_BOOL}};
	for (size_t i = 0; i < sizeof KNOWN / sizeof *KNOWN; i++)
		if (strcmp(name, KNOWN[i].name) == 0)
			return KNOWN[i].t;
	return DT_NONE;
}

/* ---- one header ---- */

static int read_shape(const cJSON *j, struct safetensor *t, const char *what, struct err *e)
{
	const cJSON *a = json_arr(j, "shape", what, e), *c;
	uint64_t n = dtype_size(t->dtype);
	if (!a)
		return -1;
	cJSON_ArrayForEach(c, a) {
		int64_t v;
		if (t->rank == SAFETENSORS_RANK)
			return err_set(e, EX_BADINPUT, "%s: '%s' has more than %d dimensions", what, t->name,
				       SAFETENSORS_RANK);
		if (json_is_int(c, &v) || v < 0 || (v && n > UINT64_MAX / (uint64_t)v))
			return err_set(e, EX_BADINPUT, "%s: '%s' has an impossible shape", what, t->name);
		t->shape[t->rank++] = v;
		n *= (uint64_t)v;
	}
	t->bytes = n;
	return 0;
}

static int read_entry(const cJSON *j, struct safetensor *t, uint64_t data_bytes, const char *what, struct err *e)
{
	static const char *const keys[] = {"dtype", "shape", "data_offsets", NULL};
	int64_t begin, end;
	if (!cJSON_IsObject(j))
		return err_set(e, EX_BADINPUT, "%s: '%s' is not an object", what, t->name);
	const char *dtype = json_str(j, "dtype", what, e);
	if (!dtype || json_only(j, keys, what, e))
		return -1;
	t->dtype = dtype_of(dtype);
	if (t->dtype == DT_NONE)
		return err_set(e, EX_BADINPUT, "%s: '%s' has the unknown dtype '%.20s'", what, t->name, dtype);
	if (read_shape(j, t, what, e))
		return -1;
	const cJSON *o = json_arr(j, "data_offsets", what, e);
	if (!o)
		return -1;
	if (cJSON_GetArraySize(o) != 2 || json_is_int(cJSON_GetArrayItem(o, 0), &begin) ||
	    json_is_int(cJSON_GetArrayItem(o, 1), &end) || begin < 0 || end < begin)
		return err_set(e, EX_BADINPUT, "%s: '%s' has impossible data_offsets", what, t->name);
	t->begin = (uint64_t)begin;
	if ((uint64_t)(end - begin) != t->bytes)
		return err_set(e, EX_BADINPUT, "%s: '%s' has %lld bytes of data, its shape needs %llu", what, t->name,
			       (long long)(end - begin), (unsigned long long)t->bytes);
	if ((uint64_t)end > data_bytes)
		return err_set(e, EX_BADINPUT, "%s: '%s' ends at byte %lld of the data, the file has %llu", what,
			       t->name, (long long)end, (unsigned long long)data_bytes);
	return 0;
}

static int by_place(const void *a, const void *b)
{
	const struct safetensor *x = a, *y = b;
	if (x->begin != y->begin)
		return x->begin < y->begin ? -1 : 1;
	return x->bytes == y->bytes ? 0 : x->bytes < y->bytes ? -1 : 1;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct safetensor *)a)->name, ((const struct safetensor *)b)->name);
}

/* The format allows neither hole nor overlap: bytes that no tensor owns could say anything. */
static int check_places(struct safetensor *t, size_t n, uint64_t data_bytes, const char *what, struct err *e)
{
	uint64_t at = 0;
	qsort(t, n, sizeof *t, by_place);
	for (size_t i = 0; i < n; at += t[i++].bytes)
		if (t[i].begin != at)
			return err_set(e, EX_BADINPUT, "%s: '%s' %s", what, t[i].name,
				       t[i].begin < at ? "overlaps another tensor" : "leaves a hole before it");
	if (at != data_bytes)
		return err_set(e, EX_BADINPUT, "%s: the tensors fill %llu bytes, the file has %llu", what,
			       (unsigned long long)at, (unsigned long long)data_bytes);
	return 0;
}

int safetensors_parse(struct safetensors *s, const char *text, size_t len, uint64_t data_bytes, int file,
		      const char *what, struct err *e)
{
	size_t first = s->n;
	const cJSON *c;
	cJSON *root = json_parse(text, len, &HEADER, what, e);
	if (!root)
		return -1;
	int rc = 0;
	if (!cJSON_IsObject(root) || *text != '{')
		rc = err_set(e, EX_BADINPUT, "%s: the header is not an object", what);
	s->t = xrealloc(s->t, (s->n + (size_t)cJSON_GetArraySize(root) + 1) * sizeof *s->t);
	for (c = root->child; c && rc == 0; c = c->next) {
		if (strcmp(c->string, "__metadata__") == 0)
			continue;
		struct safetensor *t = &s->t[s->n++];
		*t = (struct safetensor){.name = xstrdup(c->string), .file = file};
		rc = read_entry(c, t, data_bytes, what, e);
	}
	if (rc == 0)
		rc = check_places(s->t + first, s->n - first, data_bytes, what, e);
	cJSON_Delete(root);
	return rc;
}

/* ---- files ---- */

static int map_file(struct safetensors *s, const char *path, struct err *e)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? err_set(e, EX_BADINPUT, "no file '%s'", path)
				       : err_sys(e, "cannot open '%s'", path);
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size < 10) {
		close(fd);
		return err_set(e, EX_BADINPUT, "'%s' is no safetensors file: too short", path);
	}
	void *at = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (at == MAP_FAILED)
		return err_sys(e, "cannot map '%s'", path);
	s->map = xrealloc(s->map, (size_t)(s->nmaps + 1) * sizeof *s->map);
	s->map[s->nmaps++] = (struct safetensors_map){at, (size_t)st.st_size};
	return 0;
}

static int add_file(struct safetensors *s, const char *path, struct err *e)
{
	size_t first = s->n;
	uint64_t n = 0;
	if (map_file(s, path, e))
		return -1;
	int file = s->nmaps - 1;
	const struct safetensors_map *m = &s->map[file];
	const unsigned char *p = m->at;
	for (int i = 7; i >= 0; i--)
		n = n << 8 | p[i];
	if (n > SAFETENSORS_HEADER || n > m->len - 8)
		return err_set(e, EX_BADINPUT, "%s: a header of %llu bytes is impossible here", path,
			       (unsigned long long)n);
	if (safetensors_parse(s, (const char *)p + 8, (size_t)n, m->len - 8 - n, file, path, e))
		return -1;
	for (size_t i = first; i < s->n; i++)
		s->t[i].data = p + 8 + n + s->t[i].begin;
	return 0;
}

/* A name of the index goes into a path: only a plain file name will do. */
static int plain(const char *name)
{
	return *name && *name != '.' && strlen(name) < 200 && !strchr(name, '/');
}

static int add_shards(struct safetensors *s, const char *dir, const cJSON *map, const char *what, struct err *e)
{
	char **file = xcalloc((size_t)cJSON_GetArraySize(map) + 1, sizeof *file);
	int n = 0, rc = 0;
	const cJSON *c;
	for (c = map->child; c && rc == 0; c = c->next) {
		int i = 0;
		if (!cJSON_IsString(c) || !plain(c->valuestring)) {
			rc = err_set(e, EX_BADINPUT, "%s: '%s' is in no plain file name", what, c->string);
			break;
		}
		while (i < n && strcmp(file[i], c->valuestring) != 0)
			i++;
		if (i < n)
			continue;
		file[n++] = xstrdup(c->valuestring);
		char *path = xasprintf("%s/%s", dir, c->valuestring);
		rc = add_file(s, path, e);
		free(path);
	}
	qsort(s->t, s->n, sizeof *s->t, by_name);
	for (c = map->child; c && rc == 0; c = c->next) {
		const struct safetensor *t = safetensors_find(s, c->string);
		if (!t || strcmp(file[t->file], c->valuestring) != 0)
			rc = err_set(e, EX_BADINPUT, "%s: '%s' is not in '%s'", what, c->string, c->valuestring);
	}
	if (rc == 0 && s->n != (size_t)cJSON_GetArraySize(map))
		rc = err_set(e, EX_BADINPUT, "%s: the files hold %zu tensors, weight_map names %d", what, s->n,
			     cJSON_GetArraySize(map));
	for (int i = 0; i < n; i++)
		free(file[i]);
	free(file);
	return rc;
}

int safetensors_open(struct safetensors *s, const char *dir, struct err *e)
{
	char *one = xasprintf("%s/model.safetensors", dir), *index = xasprintf("%s.index.json", one);
	int rc;
	*s = (struct safetensors){0};
	if (access(index, F_OK) == 0 && access(one, F_OK) != 0) {
		cJSON *j = json_read(index, &HEADER, NULL, e);
		const cJSON *map = j ? json_obj(j, "weight_map", index, e) : NULL;
		rc = map ? add_shards(s, dir, map, index, e) : -1;
		cJSON_Delete(j);
	} else {
		rc = add_file(s, one, e);
		if (rc == 0)
			qsort(s->t, s->n, sizeof *s->t, by_name);
	}
	for (size_t i = 1; i < s->n && rc == 0; i++)
		if (strcmp(s->t[i - 1].name, s->t[i].name) == 0)
			rc = err_set(e, EX_BADINPUT, "'%s': tensor '%s' is there twice", dir, s->t[i].name);
	if (rc)
		safetensors_close(s);
	free(one);
	free(index);
	return rc;
}

const struct safetensor *safetensors_find(const struct safetensors *s, const char *name)
{
	struct safetensor key = {.name = (char *)name};
	return s->n ? bsearch(&key, s->t, s->n, sizeof *s->t, by_name) : NULL;
}

void safetensors_close(struct safetensors *s)
{
	for (size_t i = 0; i < s->n; i++)
		free(s->t[i].name);
	for (int i = 0; i < s->nmaps; i++)
		munmap(s->map[i].at, s->map[i].len);
	free(s->t);
	free(s->map);
	*s = (struct safetensors){0};
}
