/*
 * gpu_who.c - see gpu_who.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "gpu_who.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DEPTH = 4 };

int gpu_who_bin(char *out, unsigned size)
{
	ssize_t n = readlink("/proc/self/exe", out, size - 1);
	if (n <= 0)
		return -1;
	out[n] = '\0';
	char *slash = strrchr(out, '/');
	if (!slash)
		return -1;
	slash[1] = '\0';
	return 0;
}

/* Is that file one of the folder's? */
static int in_folder(const struct stat *exe, const char *bin)
{
	DIR *d = opendir(bin);
	struct dirent *f;
	int found = 0;
	while (d && !found && (f = readdir(d))) {
		struct stat st;
		found = fstatat(dirfd(d), f->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_ino == exe->st_ino &&
			st.st_dev == exe->st_dev;
	}
	if (d)
		closedir(d);
	return found;
}

/* A program that was rebuilt while it runs has no inode there any more, but it has its old name. */
static int by_name(const char *exe, const char *bin)
{
	char name[PATH_MAX];
	ssize_t n = readlink(exe, name, sizeof name - 1);
	if (n <= 0)
		return 0;
	name[n] = '\0';
	return strncmp(name, bin, strlen(bin)) == 0 && !strchr(name + strlen(bin), '/');
}

/* The fourth word of stat; the second, in parentheses, may hold anything. 0: gone. */
static long parent_of(long pid)
{
	char path[64], text[512];
	snprintf(path, sizeof path, "/proc/%ld/stat", pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	ssize_t n = read(fd, text, sizeof text - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	long parent = 0;
	const char *p = strrchr(text, ')');
	return p && sscanf(p, ") %*c %ld", &parent) == 1 ? parent : 0;
}

static int is_ours(const char *exe, const struct stat *st, const char *bin)
{
	return in_folder(st, bin) || by_name(exe, bin);
}

/* An engine is a program of a candidate's, that a stage of ours runs and is the parent of. */
static int started_by_ours(long pid, const char *bin)
{
	char exe[64];
	struct stat st;
	const long parent = parent_of(pid);
	snprintf(exe, sizeof exe, "/proc/%ld/exe", parent);
	return parent > 1 && stat(exe, &st) == 0 && is_ours(exe, &st, bin);
}

enum gpu_who gpu_who(long pid, const char *bin)
{
	for (int i = 0; i < DEPTH && pid > 1; i++) {
		char exe[64];
		struct stat st;
		snprintf(exe, sizeof exe, "/proc/%ld/exe", pid);
		if (stat(exe, &st) == 0)
			return is_ours(exe, &st, bin) || started_by_ours(pid, bin) ? GPU_WHO_OURS : GPU_WHO_FOREIGN;
		if (errno != EACCES && errno != EPERM)
			return i ? GPU_WHO_FOREIGN : GPU_WHO_GONE;
		if ((pid = parent_of(pid)) <= 0)
			return GPU_WHO_FOREIGN;
	}
	return pid <= 0 ? GPU_WHO_GONE : GPU_WHO_FOREIGN;
}
