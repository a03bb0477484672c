/*
 * fuzz_tar.c - any bytes as an archive from a runner: what is accepted has harmless names, lies within the
 * bytes, and reads the same when it is written again. Each input is read as it is, and once more with
 * checksums that fit, which chance does not find.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fuzz.h"

#include "tar.h"

#include <stdio.h>
#include <string.h>

static void seal(unsigned char *p, size_t size)
{
	for (; size >= 512; p += 512, size -= 512) {
		unsigned sum = 0;
		if (memcmp(p + 257, "ustar", 5) != 0)
			continue;
		memset(p + 148, ' ', 8);
		for (int i = 0; i < 512; i++)
			sum += p[i];
		snprintf((char *)p + 148, 8, "%06o", sum);
	}
}

static void one(const char *p, size_t size)
{
	struct tar t, again;
	struct buf b = BUF_INIT;
	struct err e = {0};
	if (tar_parse(p, size, &t, &e)) {
		MUST((e.code == EX_BADINPUT || e.code == EX_AGAIN) && e.text[0] && !t.n && !t.file);
		return;
	}
	for (size_t i = 0; i < t.n; i++) {
		const struct tar_file *f = &t.file[i];
		MUST(tar_name_ok(f->name) && f->name[0] != '/');
		MUST(!strstr(f->name, "/../") && strncmp(f->name, "../", 3) != 0);
		MUST(f->data >= p && f->len <= size && f->data + f->len <= p + size);
		MUST(tar_find(&t, f->name) == f);
		if (tar_add(&b, f->name, f->data, f->len, f->mode, &e)) {
			MUST(strlen(f->name) > 100); /* cut where we would not */
			goto out;
		}
	}
	tar_end(&b);
	MUST(!tar_parse(b.data, b.len, &again, &e) && again.n == t.n);
	for (size_t i = 0; i < t.n; i++)
		MUST(!strcmp(t.file[i].name, again.file[i].name) && t.file[i].mode == again.file[i].mode &&
		     t.file[i].len == again.file[i].len &&
		     !memcmp(t.file[i].data, again.file[i].data, t.file[i].len));
	tar_free(&again);
out:
	buf_free(&b);
	tar_free(&t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *copy = xmalloc(size + 1);
	one((const char *)data, size);
	if (size)
		memcpy(copy, data, size);
	seal((unsigned char *)copy, size);
	one(copy, size);
	free(copy);
	return 0;
}
