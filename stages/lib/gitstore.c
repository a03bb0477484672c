/*
 * gitstore.c - see gitstore.h.
 *
 * SPDX-License-Identifier: MIT
 */
/* As in hash.c: the low-level calls start fastest. */
#define OPENSSL_API_COMPAT 0x10100000L
#define OPENSSL_SUPPRESS_DEPRECATED 1
#include "gitstore.h"

#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <openssl/sha.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RAW = 20, STORED_MAX = 65535, ADLER = 65521 };

static void put_hex(const uint8_t raw[RAW], char id[GIT_HEX])
{
	for (int i = 0; i < RAW; i++)
		snprintf(id + 2 * i, 3, "%02x", raw[i]);
}

static int is_id(const char *s)
{
	return strspn(s, "0123456789abcdef") >= GIT_HEX - 1;
}

/* Adler-32 of RFC 1950; 5552 bytes fit before a sum can overflow. */
static uint32_t adler32(const unsigned char *p, size_t len)
{
	uint32_t a = 1, b = 0;
	while (len) {
		size_t n = len < 5552 ? len : 5552;
		len -= n;
		while (n--) {
			a += *p++;
			b += a;
		}
		a %= ADLER;
		b %= ADLER;
	}
	return b << 16 | a;
}

static void put_zlib(struct buf *out, const struct buf *in)
{
	const unsigned char *p = (const unsigned char *)in->data;
	size_t left = in->len;
	buf_add(out, "\x78\x01", 2);
	do {
		size_t n = left < STORED_MAX ? left : STORED_MAX;
		left -= n;
		const unsigned char head[5] = {
			left == 0, (unsigned char)(n & 255), (unsigned char)(n >> 8),
			(unsigned char)(~n & 255), (unsigned char)(~n >> 8 & 255),
		};
		buf_add(out, head, sizeof head);
		buf_add(out, p, n);
		p += n;
	} while (left);
	uint32_t sum = adler32((const unsigned char *)in->data, in->len);
	const unsigned char tail[4] = {(unsigned char)(sum >> 24), (unsigned char)(sum >> 16 & 255),
				       (unsigned char)(sum >> 8 & 255), (unsigned char)(sum & 255)};
	buf_add(out, tail, sizeof tail);
}

/* Write tmp, sync it, give it its name and sync the folder. */
static int place(const char *tmp, const char *path, const char *dir, const struct buf *text,
		 mode_t mode, struct err *e)
{
	int fd = open(tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
	if (fd < 0)
		return err_sys(e, "cannot create '%s'", tmp);
	size_t done = 0;
	while (done < text->len) {
		ssize_t n = write(fd, text->data + done, text->len - done);
		if (n < 0 && errno != EINTR)
			break;
		done += n > 0 ? (size_t)n : 0;
	}
	int bad = done < text->len || fsync(fd);
	if (bad)
		err_sys(e, "cannot write '%s'", tmp);
	if (close(fd) && !bad)
		bad = err_sys(e, "cannot close '%s'", tmp);
	if (!bad && rename(tmp, path))
		bad = err_sys(e, "cannot rename '%s' to '%s'", tmp, path);
	if (bad) {
		unlink(tmp);
		return -1;
	}
	return file_sync_dir(dir, e);
}

int gitstore_object(const char *dir, const char *type, const void *data, size_t len,
		    char id[GIT_HEX], struct err *e)
{
	char top[PATH_MAX], fan[PATH_MAX + 8], path[PATH_MAX + 64], tmp[PATH_MAX + 64];
	uint8_t raw[RAW];
	struct buf plain = BUF_INIT, packed = BUF_INIT;
	buf_addf(&plain, "%s %zu", type, len);
	buf_addc(&plain, '\0');
	buf_add(&plain, data, len);
	SHA1((const unsigned char *)plain.data, plain.len, raw);
	put_hex(raw, id);
	int rc = 0;
	if ((size_t)snprintf(top, sizeof top, "%s/objects", dir) >= sizeof top)
		rc = err_set(e, EX_BADUSE, "path too long: '%s'", dir);
	snprintf(fan, sizeof fan, "%s/%.2s", top, id);
	snprintf(path, sizeof path, "%s/%s", fan, id + 2);
	snprintf(tmp, sizeof tmp, "%s/tmp_obj_%ld", fan, (long)getpid());
	if (!rc && !file_exists(path)) {
		if (!file_exists(fan) && (dir_make(fan, e) || file_sync_dir(top, e)))
			rc = -1;
		put_zlib(&packed, &plain);
		unlink(tmp); /* of a process with our number that died here */
		if (!rc)
			rc = place(tmp, path, fan, &packed, 0444, e);
	}
	buf_free(&plain);
	buf_free(&packed);
	return rc;
}

void gitstore_entry(struct buf *tree, const char *name, const char id[GIT_HEX])
{
	buf_addf(tree, "100644 %s", name);
	buf_addc(tree, '\0');
	for (int i = 0; i < RAW; i++) {
		unsigned byte = 0;
		sscanf(id + 2 * i, "%2x", &byte);
		buf_addc(tree, (char)byte);
	}
}

/* Lines "ID refs/NAME" of packed-refs, which is there once somebody ran `git gc`. */
static int packed_ref(const char *dir, const char *name, char id[GIT_HEX])
{
	char path[PATH_MAX];
	struct buf all = BUF_INIT;
	int found = 0;
	snprintf(path, sizeof path, "%s/packed-refs", dir);
	if (file_exists(path) && file_read(path, (size_t)64 << 20, &all, NULL) == 0) {
		char *want = xasprintf(" refs/%s\n", name);
		const char *hit = strstr(buf_str(&all), want);
		if (hit && hit - all.data >= GIT_HEX - 1 && is_id(hit - (GIT_HEX - 1))) {
			memcpy(id, hit - (GIT_HEX - 1), GIT_HEX - 1);
			id[GIT_HEX - 1] = '\0';
			found = 1;
		}
		free(want);
	}
	buf_free(&all);
	return found;
}

int gitstore_ref(const char *dir, const char *name, char id[GIT_HEX])
{
	char path[PATH_MAX];
	struct buf text = BUF_INIT;
	id[0] = '\0';
	int n = snprintf(path, sizeof path, "%s/refs/%s", dir, name), found = 0;
	if (n > 0 && (size_t)n < sizeof path && file_exists(path) &&
	    file_read(path, 256, &text, NULL) == 0 && is_id(buf_str(&text))) {
		memcpy(id, text.data, GIT_HEX - 1);
		id[GIT_HEX - 1] = '\0';
		found = 1;
	}
	buf_free(&text);
	return found || packed_ref(dir, name, id);
}

int gitstore_set_ref(const char *dir, const char *name, const char id[GIT_HEX], struct err *e)
{
	char path[PATH_MAX], parent[PATH_MAX], lock[PATH_MAX + 8];
	struct buf text = BUF_INIT;
	if ((size_t)snprintf(path, sizeof path, "%s/refs/%s", dir, name) >= sizeof path)
		return err_set(e, EX_BADUSE, "path too long: '%s'", name);
	snprintf(lock, sizeof lock, "%s.lock", path);
	memcpy(parent, path, sizeof parent);
	*strrchr(parent, '/') = '\0';
	int rc = file_exists(parent) ? 0 : dir_make(parent, e);
	buf_addf(&text, "%.40s\n", id);
	if (!rc)
		rc = place(lock, path, parent, &text, 0644, e);
	buf_free(&text);
	return rc;
}
