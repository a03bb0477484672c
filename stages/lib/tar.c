/*
 * tar.c - see tar.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tar.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 512, NAME_MOST = 200 };

struct header {
	char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8], type, link[100];
	char magic[6], version[2], user[32], group[32], major[8], minor[8], prefix[155], rest[12];
};

static const char ALPHABET[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.+,=@- /";

int tar_name_ok(const char *name)
{
	size_t n = strlen(name);
	if (!n || n > NAME_MOST || strspn(name, ALPHABET) != n || name[n - 1] == '/')
		return 0;
	for (const char *part = name; part; part = strchr(part, '/') ? strchr(part, '/') + 1 : NULL)
		if (*part == '.' || *part == '/')
			return 0;
	return 1;
}

/* As in the standard: bytes of the header, its own field as blanks. */
static unsigned checksum(const struct header *h)
{
	const unsigned char *p = (const unsigned char *)h;
	unsigned sum = 0;
	for (size_t i = 0; i < BLOCK; i++)
		sum += i >= 148 && i < 156 ? ' ' : p[i];
	return sum;
}

/* Where to cut a name that does not fit into the first field; 0 it need not, -1 it cannot. */
static int cut(const char *name)
{
	size_t n = strlen(name);
	if (n <= sizeof ((struct header *)0)->name)
		return 0;
	for (size_t i = n - 101; i < n && i <= sizeof ((struct header *)0)->prefix; i++)
		if (name[i] == '/')
			return (int)i;
	return -1;
}

int tar_add(struct buf *out, const char *name, const void *data, size_t len, unsigned mode, struct err *e)
{
	static const char zeros[BLOCK];
	struct header h;
	char number[16];
	int at = cut(name);
	_Static_assert(sizeof h == BLOCK, "a header is one block");
	if (!tar_name_ok(name) || at < 0)
		return err_set(e, EX_BADINPUT, "'%.200s' is no name that can travel to a runner", name);
	if (len >= (size_t)1 << 33)
		return err_set(e, EX_BADINPUT, "'%s' is too large to travel to a runner", name);
	memset(&h, 0, sizeof h);
	memcpy(h.prefix, name, (size_t)at);
	memcpy(h.name, name + at + (at > 0), strlen(name + at + (at > 0)));
	snprintf(h.mode, sizeof h.mode, "%07o", mode & 0777);
	snprintf(h.uid, sizeof h.uid, "%07o", 0);
	snprintf(h.gid, sizeof h.gid, "%07o", 0);
	snprintf(number, sizeof number, "%011llo", (unsigned long long)len);
	memcpy(h.size, number, sizeof h.size);
	snprintf(h.mtime, sizeof h.mtime, "%011o", 0);
	h.type = '0';
	memcpy(h.magic, "ustar", 6);
	memcpy(h.version, "00", 2);
	snprintf(number, sizeof number, "%06o", checksum(&h));
	memcpy(h.sum, number, 7);
	h.sum[7] = ' ';
	buf_add(out, &h, sizeof h);
	if (len)
		buf_add(out, data, len);
	buf_add(out, zeros, (BLOCK - len % BLOCK) % BLOCK);
	return 0;
}

void tar_end(struct buf *out)
{
	static const char zeros[2 * BLOCK];
	buf_add(out, zeros, sizeof zeros);
}

/* Octal digits, then a NUL or a blank. -1 when it is anything else. */
static long long octal(const char *field, size_t n)
{
	long long v = 0;
	size_t i = 0;
	for (; i < n && field[i] >= '0' && field[i] <= '7'; i++)
		v = v * 8 + (field[i] - '0');
	return i && i < n && (field[i] == '\0' || field[i] == ' ') ? v : -1;
}

static int is_zero(const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (p[i])
			return 0;
	return 1;
}

static int refuse(struct err *e, const char *why)
{
	return err_set(e, EX_BADINPUT, "the archive is refused: %s", why);
}

static int take_name(const struct header *h, char out[TAR_NAME], struct err *e)
{
	int a = (int)strnlen(h->prefix, sizeof h->prefix), b = (int)strnlen(h->name, sizeof h->name);
	if (!is_zero(h->prefix + a, sizeof h->prefix - (size_t)a) ||
	    !is_zero(h->name + b, sizeof h->name - (size_t)b))
		return refuse(e, "a name has something behind its end");
	int n = snprintf(out, TAR_NAME, "%.*s%s%.*s", a, h->prefix, a ? "/" : "", b, h->name);
	if (n < 0 || n >= TAR_NAME || !tar_name_ok(out))
		return refuse(e, "it has a name that may lead out of its folder");
	return 0;
}

static int take_header(const struct header *h, struct tar_file *f, struct err *e)
{
	long long size, mode;
	if (memcmp(h->magic, "ustar", 6) != 0 || memcmp(h->version, "00", 2) != 0)
		return refuse(e, "it is not in the format ustar");
	if (octal(h->sum, sizeof h->sum) != (long long)checksum(h))
		return refuse(e, "a checksum is wrong");
	if (h->type != '0' || !is_zero(h->link, sizeof h->link))
		return refuse(e, "it has something that is no regular file");
	if ((size = octal(h->size, sizeof h->size)) < 0 || (mode = octal(h->mode, sizeof h->mode)) < 0)
		return refuse(e, "a size or mode is no number");
	f->len = (size_t)size;
	f->mode = (unsigned)mode & 0777;
	return take_name(h, f->name, e);
}

static int parse(const char *p, size_t len, struct tar *t, struct err *e)
{
	size_t at = 0, room = 0;
	while (len - at >= BLOCK && !is_zero(p + at, BLOCK)) {
		struct header h;
		struct tar_file f;
		memcpy(&h, p + at, BLOCK);
		if (take_header(&h, &f, e))
			return -1;
		at += BLOCK;
		if (f.len > len - at || (BLOCK - f.len % BLOCK) % BLOCK > len - at - f.len)
			return err_set(e, EX_AGAIN, "the archive ends within '%s'", f.name);
		f.data = p + at;
		at += f.len;
		if (!is_zero(p + at, (BLOCK - f.len % BLOCK) % BLOCK))
			return refuse(e, "it has something behind a file's end");
		at += (BLOCK - f.len % BLOCK) % BLOCK;
		if (tar_find(t, f.name))
			return refuse(e, "it has a name twice");
		if (t->n == TAR_FILES)
			return refuse(e, "it has too many files");
		if (t->n == room)
			t->file = xrealloc(t->file, (room = room ? 2 * room : 32) * sizeof *t->file);
		t->file[t->n++] = f;
	}
	if (len - at < 2 * BLOCK)
		return err_set(e, EX_AGAIN, "the archive has no end");
	return is_zero(p + at, len - at) ? 0 : refuse(e, "it goes on behind its end");
}

int tar_parse(const void *data, size_t len, struct tar *t, struct err *e)
{
	*t = (struct tar){0};
	if (parse(data, len, t, e)) {
		tar_free(t);
		return -1;
	}
	return 0;
}

const struct tar_file *tar_find(const struct tar *t, const char *name)
{
	for (size_t i = 0; i < t->n; i++)
		if (strcmp(t->file[i].name, name) == 0)
			return &t->file[i];
	return NULL;
}

void tar_free(struct tar *t)
{
	free(t->file);
	*t = (struct tar){0};
}
