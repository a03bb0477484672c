/*
 * file.c - see file.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "file.h"

#include "defence.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Read until end of file; `max` bytes are accepted, one more is an error. `size` is what the file
 * said: most are small, and room for a large one costs more than the reading. */
static int read_all(int fd, const char *path, off_t size, size_t max, struct buf *out, struct err *e)
{
	for (;;) {
		size_t room = max - out->len + 1, left = 65536;
		if (size >= (off_t)out->len && size - (off_t)out->len < 65536)
			left = (size_t)size - out->len + 1;
		size_t want = room < left ? room : left;
		buf_room(out, want);
		ssize_t n = read(fd, out->data + out->len, want);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(e, "cannot read '%s'", path);
		out->len += (size_t)n;
		out->data[out->len] = '\0';
		if (n == 0)
			return 0;
		if (out->len > max)
			return err_set(e, EX_BADINPUT, "'%s' is larger than %zu bytes", path, max);
	}
}

static int open_regular(const char *path, struct stat *st, struct err *e)
{
	/* O_NONBLOCK: a planted fifo must not hang us before fstat can refuse it. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | (DEFENCE("file.nofollow") ? O_NOFOLLOW : 0));
	if (fd < 0)
		return err_sys(e, "cannot open '%s'", path);
	if (fstat(fd, st)) {
		err_sys(e, "cannot stat '%s'", path);
		close(fd);
		return -1;
	}
	if (!S_ISREG(st->st_mode)) {
		close(fd);
		return err_set(e, EX_BADINPUT, "'%s' is not a regular file", path);
	}
	return fd;
}

int file_read(const char *path, size_t max, struct buf *out, struct err *e)
{
	struct stat st;
	int fd = open_regular(path, &st, e);
	if (fd < 0)
		return -1;
	buf_clear(out);
	buf_room(out, 1);
	out->data[0] = '\0';
	int r = read_all(fd, path, st.st_size, max, out, e);
	close(fd);
	return r;
}

static int write_all(int fd, const char *data, size_t len)
{
	while (len) {
		ssize_t n = write(fd, data, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		data += n;
		len -= (size_t)n;
	}
	return 0;
}

/* Write `data` into a fresh file `tmp` and sync it. */
static int write_temp(const char *tmp, const void *data, size_t len, mode_t mode, struct err *e)
{
	int fd = open(tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
	if (fd < 0)
		return err_sys(e, "cannot create '%s'", tmp);
	if (write_all(fd, data, len)) {
		err_sys(e, "cannot write '%s'", tmp);
		close(fd);
		return -1;
	}
	if (fsync(fd)) {
		err_sys(e, "cannot sync '%s'", tmp);
		close(fd);
		return -1;
	}
	if (close(fd))
		return err_sys(e, "cannot close '%s'", tmp);
	return 0;
}

static void parent_dir(const char *path, char out[PATH_MAX])
{
	const char *slash = strrchr(path, '/');
	size_t n = slash ? (size_t)(slash - path) : 0;
	if (slash == path)
		n = 1;
	if (n >= PATH_MAX)
		n = PATH_MAX - 1;
	memcpy(out, path, n);
	out[n] = '\0';
	if (!n)
		strcpy(out, ".");
}

/* Without the defence: what lies at `path` is followed where it is a link. */
static int through(const char *tmp, const char *path)
{
	char real[PATH_MAX];
	return rename(tmp, realpath(path, real) ? real : path);
}

int file_write(const char *path, const void *data, size_t len, mode_t mode, struct err *e)
{
	char tmp[PATH_MAX], dir[PATH_MAX];
	if (snprintf(tmp, sizeof tmp, "%s.tmp.%ld", path, (long)getpid()) >= (int)sizeof tmp)
		return err_set(e, EX_BADUSE, "path too long: '%s'", path);
	unlink(tmp); /* ours: a process with this id that died here */
	if (write_temp(tmp, data, len, mode, e)) {
		unlink(tmp);
		return -1;
	}
	if (DEFENCE("file.rename") ? rename(tmp, path) : through(tmp, path)) {
		err_sys(e, "cannot rename '%s' to '%s'", tmp, path);
		unlink(tmp);
		return -1;
	}
	parent_dir(path, dir);
	return file_sync_dir(dir, e);
}

/* Does the open file end in a line that was never finished? */
static int torn_end(int fd)
{
	off_t end = lseek(fd, 0, SEEK_END);
	char last;
	return end > 0 && pread(fd, &last, 1, end - 1) == 1 && last != '\n';
}

int file_append(const char *path, const char *line, struct err *e)
{
	int fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0666);
	if (fd < 0)
		return err_sys(e, "cannot open '%s'", path);
	struct buf b = BUF_INIT;
	if (torn_end(fd))
		buf_addc(&b, '\n');
	buf_adds(&b, line);
	buf_addc(&b, '\n');
	int r = 0;
	if (write_all(fd, b.data, b.len))
		r = err_sys(e, "cannot append to '%s'", path);
	else if (fsync(fd))
		r = err_sys(e, "cannot sync '%s'", path);
	buf_free(&b);
	if (close(fd) && !r)
		r = err_sys(e, "cannot close '%s'", path);
	return r;
}

int file_exists(const char *path)
{
	struct stat st;
	return lstat(path, &st) == 0;
}

int file_copy(const char *from, const char *to, struct err *e)
{
	struct stat st;
	int fd = open_regular(from, &st, e);
	if (fd < 0)
		return -1;
	struct buf b = BUF_INIT;
	int r = read_all(fd, from, st.st_size, (size_t)1 << 30, &b, e);
	close(fd);
	if (!r)
		r = file_write(to, buf_str(&b), b.len, st.st_mode & 0777, e);
	buf_free(&b);
	return r;
}

static int sync_flags(const char *path, int flags, struct err *e)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | flags);
	if (fd < 0)
		return err_sys(e, "cannot open '%s'", path);
	int r = fsync(fd);
	if (r)
		r = err_sys(e, "cannot sync '%s'", path);
	close(fd);
	return r;
}

int file_sync_dir(const char *dir, struct err *e)
{
	return sync_flags(dir, O_DIRECTORY, e);
}

int file_sync(const char *path, struct err *e)
{
	return sync_flags(path, DEFENCE("file.nofollow") ? O_NOFOLLOW : 0, e);
}

int dir_make(const char *path, struct err *e)
{
	char part[PATH_MAX];
	size_t n = strlen(path);
	if (n >= sizeof part)
		return err_set(e, EX_BADUSE, "path too long: '%s'", path);
	memcpy(part, path, n + 1);
	for (size_t i = 1; i <= n; i++) {
		if (part[i] != '/' && part[i] != '\0')
			continue;
		char keep = part[i];
		part[i] = '\0';
		if (mkdir(part, 0777) && errno != EEXIST)
			return err_sys(e, "cannot make directory '%s'", part);
		part[i] = keep;
	}
	struct stat st;
	if (stat(path, &st) || !S_ISDIR(st.st_mode))
		return err_set(e, EX_SYS, "'%s' is not a directory", path);
	return 0;
}

/* Remove the entries of an open directory; the descriptor is consumed. */
static int empty_dir(int dfd, const char *path, struct err *e)
{
	DIR *d = fdopendir(dfd);
	if (!d) {
		close(dfd);
		return err_sys(e, "cannot read directory '%s'", path);
	}
	int r = 0;
	struct dirent *ent;
	while (!r && (ent = readdir(d))) {
		if (!strcmp(ent->d_name, ".") || !strcmp(ent->d_name, ".."))
			continue;
		if (!unlinkat(dirfd(d), ent->d_name, 0))
			continue;
		int sub = openat(dirfd(d), ent->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (sub < 0)
			r = err_sys(e, "cannot remove '%s/%s'", path, ent->d_name);
		else
			r = empty_dir(sub, path, e);
		if (!r && unlinkat(dirfd(d), ent->d_name, AT_REMOVEDIR))
			r = err_sys(e, "cannot remove '%s/%s'", path, ent->d_name);
	}
	closedir(d);
	return r;
}

int dir_remove(const char *path, struct err *e)
{
	if (!unlink(path) || errno == ENOENT)
		return 0;
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return err_sys(e, "cannot remove '%s'", path);
	if (empty_dir(fd, path, e))
		return -1;
	return rmdir(path) ? err_sys(e, "cannot remove '%s'", path) : 0;
}

int link_swap(const char *target, const char *path, struct err *e)
{
	char tmp[PATH_MAX], dir[PATH_MAX];
	if (snprintf(tmp, sizeof tmp, "%s.tmp.%ld", path, (long)getpid()) >= (int)sizeof tmp)
		return err_set(e, EX_BADUSE, "path too long: '%s'", path);
	unlink(tmp);
	if (symlink(target, tmp))
		return err_sys(e, "cannot make link '%s'", tmp);
	if (rename(tmp, path)) {
		err_sys(e, "cannot rename '%s' to '%s'", tmp, path);
		unlink(tmp);
		return -1;
	}
	parent_dir(path, dir);
	return file_sync_dir(dir, e);
}
