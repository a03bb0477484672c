/*
 * box_io.c - see box_part.h: descriptors and files of the box.
 *
 * SPDX-License-Identifier: MIT
 */
#include "box_part.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* C++ names of kernels and macro definitions: no quotes, no directives, no paths. */
int box_plain(const char *s, const char *extra)
{
	size_t n = strlen(s);
	if (n == 0 || n > 200 || !((*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z') || *s == '_'))
		return 0;
	for (; *s; s++)
		if (!((*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z') || (*s >= '0' && *s <= '9') ||
		      *s == '_' || strchr(extra, *s)))
			return 0;
	return 1;
}

int box_fd_read(int fd, size_t max, struct buf *out, struct err *e)
{
	char chunk[65536];
	ssize_t n;
	while ((n = read(fd, chunk, sizeof chunk)) > 0 && out->len <= max)
		buf_add(out, chunk, (size_t)n);
	return n < 0 ? err_sys(e, "cannot read descriptor %d", fd)
		     : out->len > max ? err_set(e, EX_BADINPUT, "descriptor %d: too long", fd) : 0;
}

int box_fd_give(int fd, const void *data, size_t len, struct err *e)
{
	for (size_t done = 0; done < len;) {
		ssize_t n = write(fd, (const char *)data + done, len - done);
		if (n <= 0)
			return err_sys(e, "cannot write descriptor %d", fd);
		done += (size_t)n;
	}
	return 0;
}

int box_file_read(const char *name, struct buf *data, struct err *e)
{
	int fd = open(name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return err_sys(e, "cannot open '%s'", name);
	int rc = box_fd_read(fd, BOX_ARTEFACT_MAX, data, e);
	close(fd);
	return rc;
}

void box_isolation(const struct box_result *r, int n, int first, char all[CONFINE_LIST])
{
	for (int i = 0; i < n; i++) {
		if (first && !i)
			snprintf(all, CONFINE_LIST, "%s", r[i].isolation);
		else
			confine_common(all, r[i].isolation, all);
	}
}
