/*
 * tool.c - see tool.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { LINE = 256 };

/* What the remembered line must begin with. */
static void stamp(const struct stat *st, char out[LINE])
{
	snprintf(out, LINE, "%llu %lld %lld.%09ld %lld.%09ld ", (unsigned long long)st->st_ino,
		 (long long)st->st_size, (long long)st->st_mtim.tv_sec, st->st_mtim.tv_nsec,
		 (long long)st->st_ctim.tv_sec, st->st_ctim.tv_nsec);
}

/* Beside the file, or (dir) in another folder, by the hash of its path. */
static int memory_path(const char *path, const char *dir, char out[PATH_MAX])
{
	const char *slash = strrchr(path, '/');
	char name[HASH_HEX];
	if (!slash || strlen(path) > PATH_MAX - 64 || (dir && strlen(dir) > PATH_MAX - 128))
		return -1;
	hash_hex(path, strlen(path), name);
	if (dir)
		snprintf(out, PATH_MAX, "%.*s/.sha/%s", PATH_MAX - 128, dir, name);
	else
		snprintf(out, PATH_MAX, "%.*s/.sha%s", (int)(slash - path), path, slash);
	return 0;
}

static int recall(const char *memory, const char *want, char sha[HASH_HEX])
{
	char line[LINE + HASH_HEX];
	int fd = open(memory, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return -1;
	ssize_t n = read(fd, line, sizeof line - 1);
	close(fd);
	size_t k = strlen(want);
	if (n != (ssize_t)k + 64 || memcmp(line, want, k) != 0)
		return -1;
	memcpy(sha, line + k, 64);
	sha[64] = '\0';
	return hash_is_hex(sha) ? 0 : -1;
}

/* Not synced: a lost or torn memory is computed again. */
static void remember(const char *memory, const char *want, const char *sha)
{
	char tmp[PATH_MAX + 32], dir[PATH_MAX], line[LINE + HASH_HEX];
	snprintf(dir, sizeof dir, "%.*s", (int)(strrchr(memory, '/') - memory), memory);
	if (mkdir(dir, 0777) && errno != EEXIST)
		return;
	snprintf(tmp, sizeof tmp, "%s.tmp.%ld", memory, (long)getpid());
	int fd = open(tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd < 0)
		return;
	int n = snprintf(line, sizeof line, "%s%s", want, sha);
	int ok = write(fd, line, (size_t)n) == n;
	if (close(fd) || !ok || rename(tmp, memory))
		unlink(tmp);
}

int tool_hash(const char *path, char sha[HASH_HEX], struct err *e)
{
	return tool_hash_in(NULL, path, sha, e);
}

int tool_hash_in(const char *dir, const char *path, char sha[HASH_HEX], struct err *e)
{
	struct stat st;
	char memory[PATH_MAX], want[LINE];
	if (stat(path, &st))
		return err_sys(e, "cannot look at '%s'", path);
	stamp(&st, want);
	int known = memory_path(path, dir, memory) == 0;
	if (known && recall(memory, want, sha) == 0)
		return 0;
	if (hash_file(path, sha, e))
		return -1;
	if (known && time(NULL) - st.st_ctim.tv_sec >= 2)
		remember(memory, want, sha);
	return 0;
}

int tool_hash_self(char sha[HASH_HEX], struct err *e)
{
	char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
	if (n <= 0)
		return err_sys(e, "cannot find my own program");
	path[n] = '\0';
	/* Rebuilt while it runs: the name is gone or is another file; the link still leads to ours. */
	struct stat named, mine;
	if (stat(path, &named) || stat("/proc/self/exe", &mine) || named.st_ino != mine.st_ino)
		return hash_file("/proc/self/exe", sha, e);
	return tool_hash(path, sha, e);
}
