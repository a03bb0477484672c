/*
 * toolkit.c - see toolkit.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "toolkit.h"

#include "buf.h"
#include "file.h"

#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OLDEST_MAJOR = 12, OLDEST_MINOR = 4, NEWEST_MAJOR = 13 };

/* Below a root; the last two are where distributions put libraries. */
const char *const TOOLKIT_LIB_DIRS[] = {"lib64",
				       "lib",
				       "targets/x86_64-linux/lib",
				       "targets/sbsa-linux/lib",
				       "lib/x86_64-linux-gnu",
				       "lib/aarch64-linux-gnu",
				       NULL};
static const char *const NAMES[] = {"libnvrtc.so.13", "libnvrtc.so.12", NULL};
static const char *const INCLUDE_DIRS[] = {"include", "targets/x86_64-linux/include",
					   "targets/sbsa-linux/include", "include/cuda", NULL};

static int copy(char *out, size_t size, const char *text)
{
	return snprintf(out, size, "%s", text) < (int)size ? 0 : -1;
}

/* The newest NVRTC below `root`. */
static int library(const char *root, struct toolkit *t)
{
	char path[PATH_MAX], real[PATH_MAX];
	struct stat st;
	for (const char *const *n = NAMES; *n; n++)
		for (const char *const *d = TOOLKIT_LIB_DIRS; *d; d++) {
			if (snprintf(path, sizeof path, "%s/%s/%s", root, *d, *n) >= PATH_MAX ||
			    !realpath(path, real) || stat(real, &st) || !S_ISREG(st.st_mode) ||
			    copy(t->lib, sizeof t->lib, real))
				continue;
			snprintf(t->id, sizeof t->id, "%.1000s %lld %lld.%ld", real, (long long)st.st_size,
				 (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
			return 1;
		}
	return 0;
}

/* #define CUDA_VERSION 13000, near the start of cuda.h. */
static void version(const char *include, struct toolkit *t)
{
	static const char DEFINE[] = "#define CUDA_VERSION ";
	char path[PATH_MAX];
	struct buf text = BUF_INIT;
	struct err ignored;
	if (snprintf(path, sizeof path, "%s/cuda.h", include) < PATH_MAX &&
	    !file_read(path, 8u << 20, &text, &ignored)) {
		const char *at = strstr(buf_str(&text), DEFINE);
		long v = at ? strtol(at + sizeof DEFINE - 1, NULL, 10) : 0;
		t->major = v > 0 && v < 1000000 ? (int)(v / 1000) : 0;
		t->minor = v > 0 && v < 1000000 ? (int)(v % 1000 / 10) : 0;
	}
	buf_free(&text);
}

static void headers(const char *root, struct toolkit *t)
{
	char path[PATH_MAX], real[PATH_MAX], file[PATH_MAX];
	for (const char *const *d = INCLUDE_DIRS; *d; d++) {
		if (snprintf(path, sizeof path, "%s/%s", root, *d) >= PATH_MAX || !realpath(path, real) ||
		    snprintf(file, sizeof file, "%.4000s/cuda_runtime.h", real) >= PATH_MAX ||
		    access(file, R_OK) || copy(t->include, sizeof t->include, real))
			continue;
		snprintf(t->cccl, sizeof t->cccl, "%s/cccl", t->include);
		if (access(t->cccl, R_OK))
			t->cccl[0] = '\0';
		version(t->include, t);
		return;
	}
}

static int try_root(const char *root, struct toolkit *t)
{
	char real[PATH_MAX];
	memset(t, 0, sizeof *t);
	if (!root || root[0] != '/' || !realpath(root, real) || copy(t->root, sizeof t->root, real) ||
	    !library(real, t))
		return 0;
	headers(real, t);
	return 1;
}

/* /usr/local/cuda-12.8, /usr/local/cuda-13.0: by number, the highest first. */
static int by_version(const void *a, const void *b)
{
	const char *x = strrchr(*(char *const *)a, '-'), *y = strrchr(*(char *const *)b, '-');
	double p = x ? strtod(x + 1, NULL) : 0, q = y ? strtod(y + 1, NULL) : 0;
	return p < q ? 1 : p > q ? -1 : 0;
}

static int try_numbered(struct toolkit *t)
{
	glob_t g;
	int found = 0;
	if (glob("/usr/local/cuda-[0-9]*", 0, NULL, &g))
		return 0;
	qsort(g.gl_pathv, g.gl_pathc, sizeof *g.gl_pathv, by_version);
	for (size_t i = 0; i < g.gl_pathc && !found; i++)
		found = try_root(g.gl_pathv[i], t);
	globfree(&g);
	return found;
}

int toolkit_find(struct toolkit *t, struct err *e)
{
	const char *home = getenv("CUDA_HOME"), *path = getenv("CUDA_PATH");
	if (!try_root(home, t) && !try_root(path, t) && !try_root("/usr/local/cuda", t) && !try_numbered(t) &&
	    !try_root("/opt/cuda", t) && !try_root("/usr/lib/cuda", t) &&
	    !try_root("/usr/lib/nvidia-cuda-toolkit", t) && !try_root("/usr", t))
		return err_set(e, EX_NOENV,
			       "no CUDA toolkit here: libnvrtc.so.13 or .12 is looked for in CUDA_HOME, "
			       "/usr/local/cuda*, /opt/cuda and /usr");
	if (t->major && (t->major > NEWEST_MAJOR || t->major < OLDEST_MAJOR ||
			 (t->major == OLDEST_MAJOR && t->minor < OLDEST_MINOR)))
		return err_set(e, EX_NOENV,
			       "the CUDA toolkit in %s is %d.%d: 12.4 to 13.x are supported (CUDA_HOME "
			       "names another)",
			       t->root, t->major, t->minor);
	return 0;
}
