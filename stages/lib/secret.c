/*
 * secret.c - see secret.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "secret.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int inside_cwd(const char *path)
{
	char real[PATH_MAX], cwd[PATH_MAX];

	return realpath(path, real) && getcwd(cwd, sizeof cwd) && strcmp(cwd, "/") &&
	       !strncmp(real, cwd, strlen(cwd)) && real[strlen(cwd)] == '/';
}

static int read_all(int fd, const char *path, struct buf *out, struct err *e)
{
	char text[4096];
	ssize_t n = read(fd, text, sizeof text);

	if (n < 0)
		return err_sys(e, "cannot read key file '%s'", path);
	buf_add(out, text, (size_t)n);
	explicit_bzero(text, sizeof text);
	return 0;
}

int secret_read(const char *name, struct buf *out, struct err *e)
{
	const char *home = getenv("HOME");
	char *path = !strncmp(name, "~/", 2) && home ? xasprintf("%s/%s", home, name + 2) : xstrdup(name);
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), rc;
	struct stat st;

	if (fd < 0 && errno == ENOENT)
		rc = 1;
	else if (fd < 0 || fstat(fd, &st))
		rc = err_set(e, EX_NOENV, "cannot open key file '%s': %s", path, strerror(errno));
	else if (!S_ISREG(st.st_mode))
		rc = err_set(e, EX_NOENV, "key file '%s' is not a regular file", path);
	else if (st.st_mode & 077)
		rc = err_set(e, EX_NOENV, "key file '%s' can be read by others: chmod 600 %s", path, path);
	else if (inside_cwd(path))
		rc = err_set(e, EX_NOENV, "key file '%s' lies inside the repository: move it out", path);
	else
		rc = read_all(fd, path, out, e);
	if (fd >= 0)
		close(fd);
	free(path);
	return rc;
}
