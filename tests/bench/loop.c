/*
 * loop.c - what one trial costs the machine, at trial 1, 1000 and 5000.
 *
 * Works in a scratch copy of the repository (DEVICE=sim, PROPOSER=sweep): real runs of a few
 * trials, with closed synthetic trials in between, made by copying a real one under new ids.
 * Measures CPU (user + system, of make and all that it starts), wall time and the largest
 * resident process; then the up-to-date check over all trials. Prints a table.
 *
 *   loop SCRATCH [MOST]        SCRATCH: made by loop.sh; MOST 5000 by default
 *
 * Ends with 1 when the late trials cost more than twice the early ones or the up-to-date check
 * takes a second of CPU or more.
 *
 * SPDX-License-Identifier: MIT
 */
#include "../../stages/lib/file.h"
#include "../../stages/lib/trial.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { EACH = 5 }; /* trials of a measured run */

struct cost {
	double cpu, wall;
	long rss_kb;
	int rc;
};

static double clock_s(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double seconds(struct timeval t)
{
	return (double)t.tv_sec + (double)t.tv_usec * 1e-6;
}

static struct cost run(char *const *argv)
{
	struct cost c = {.rc = -1};
	struct rusage u;
	double from = clock_s();
	int status;
	pid_t pid = fork();
	if (pid == 0) {
		int fd = open("loop.log", O_WRONLY | O_CREAT | O_APPEND, 0644);
		dup2(fd, 1);
		dup2(fd, 2);
		execvp(argv[0], argv);
		_exit(127);
	}
	if (pid < 0 || wait4(pid, &status, 0, &u) != pid)
		die(EX_SYS, "cannot run %s: %s", argv[0], strerror(errno));
	c.wall = clock_s() - from;
	c.cpu = seconds(u.ru_utime) + seconds(u.ru_stime);
	c.rss_kb = u.ru_maxrss;
	c.rc = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
	return c;
}

static struct cost iterate(void)
{
	char n[16];
	snprintf(n, sizeof n, "--N=%d", EACH);
	/* iterate itself, as `make iterate` calls it: make would look at the sources first. */
	char *argv[] = {".build/bin/iterate", "--SPEC=vector_add", "--DEVICE=sim", "--PROPOSER=sweep", n,
			NULL};
	struct cost c = run(argv);
	if (c.rc != 0)
		die(EX_HARNESS, "iterate failed with %d; see loop.log in the scratch folder", c.rc);
	return c;
}

/* `"OLD"` and `trials/OLD/` become those of the new id; other text stays. */
static void rename_ids(const struct buf *in, long from, long to, struct buf *out)
{
	char was[2][2][40], now[2][2][40];
	for (int d = 0; d < 2; d++) { /* the trial itself, and the one before it */
		snprintf(was[d][0], 40, "\"%04ld\"", from - d);
		snprintf(now[d][0], 40, "\"%04ld\"", to - d);
		snprintf(was[d][1], 40, "trials/%04ld/", from - d);
		snprintf(now[d][1], 40, "trials/%04ld/", to - d);
	}
	for (size_t i = 0; i < in->len;) {
		int hit = 0;
		for (int k = 0; k < 4 && !hit; k++) {
			size_t n = strlen(was[k / 2][k % 2]);
			if (i + n <= in->len && memcmp(in->data + i, was[k / 2][k % 2], n) == 0) {
				buf_adds(out, now[k / 2][k % 2]);
				i += n;
				hit = 1;
			}
		}
		if (!hit)
			buf_addc(out, in->data[i++]);
	}
}

static void put(const char *path, const struct buf *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	if (fd < 0 || write(fd, buf_str(text), text->len) != (ssize_t)text->len)
		die(EX_SYS, "cannot write '%s': %s", path, strerror(errno));
	close(fd);
}

static void copy_tree(const char *from, const char *to, long a, long b)
{
	DIR *d = opendir(from);
	struct dirent *f;
	struct err e;
	if (!d || (mkdir(to, 0755) != 0 && errno != EEXIST))
		die(EX_SYS, "cannot copy '%s'", from);
	while ((f = readdir(d)) != NULL) {
		struct stat st;
		if (f->d_name[0] == '.')
			continue;
		char *x = xasprintf("%s/%s", from, f->d_name), *y = xasprintf("%s/%s", to, f->d_name);
		if (lstat(x, &st) != 0)
			die(EX_SYS, "cannot read '%s'", x);
		if (S_ISDIR(st.st_mode)) {
			copy_tree(x, y, a, b);
		} else if (S_ISREG(st.st_mode)) {
			struct buf in = BUF_INIT, out = BUF_INIT;
			size_t n = strlen(x);
			if (file_read(x, 1 << 26, &in, &e) != 0)
				die_err(&e);
			if (n > 5 && strcmp(x + n - 5, ".json") == 0)
				rename_ids(&in, a, b, &out);
			else
				buf_add(&out, in.data, in.len);
			put(y, &out);
			buf_free(&in);
			buf_free(&out);
		}
		free(x);
		free(y);
	}
	closedir(d);
}

/* The last line of a derived file, once more, for every id in [from, to). */
static void extend(const char *path, long last, long to)
{
	struct buf all = BUF_INIT, out = BUF_INIT;
	struct err e;
	if (file_read(path, 1 << 28, &all, &e) != 0)
		die_err(&e);
	size_t start = all.len ? all.len - 1 : 0;
	while (start > 0 && all.data[start - 1] != '\n')
		start--;
	char id[24], neu[24];
	snprintf(id, sizeof id, "%04ld", last);
	for (long i = last + 1; i <= to; i++) {
		const char *p = all.data + start, *hit = strstr(p, id);
		snprintf(neu, sizeof neu, "%04ld", i);
		if (!hit)
			die(EX_HARNESS, "'%s' does not name trial %s in its last line", path, id);
		buf_add(&out, p, (size_t)(hit - p));
		buf_adds(&out, neu);
		buf_adds(&out, hit + strlen(id));
	}
	buf_add(&all, out.data, out.len);
	put(path, &all);
	buf_free(&all);
	buf_free(&out);
}

static long newest(void)
{
	DIR *d = opendir("trials");
	struct dirent *f;
	long most = 0;
	if (!d)
		die(EX_SYS, "no trials/ here");
	while ((f = readdir(d)) != NULL)
		if (trial_id_ok(f->d_name) && trial_number(f->d_name) > most)
			most = trial_number(f->d_name);
	closedir(d);
	return most;
}

/* Closed records up to `to`, by copying the newest. */
static void fill_up(long to)
{
	long last = newest();
	for (long i = last + 1; i <= to; i++) {
		char a[TRIAL_PATH], b[TRIAL_PATH];
		snprintf(a, sizeof a, "trials/%04ld", last);
		snprintf(b, sizeof b, "trials/%04ld", i);
		copy_tree(a, b, last, i);
	}
	if (to > last) {
		extend("trials/log.jsonl", last, to);
		extend("trials/index.tsv", last, to);
	}
}

/* make's question "is everything there?", over every trial of the folder. */
static struct cost up_to_date(void)
{
	struct buf ids = BUF_INIT;
	long most = newest();
	buf_adds(&ids, "TS_W := 1\nTS_G := 1\nTS_IDS :=");
	for (long i = 1; i <= most; i++)
		buf_addf(&ids, " %04ld", i);
	buf_adds(&ids, "\n");
	mkdir("all-trials", 0755);
	put("all-trials/ids.mk", &ids);
	buf_free(&ids);
	char *argv[] = {"make", "-q", "-f", "tools/make/trials.mk", "TS_RUN=all-trials",
			"TS_BIN=.build/bin", NULL};
	return run(argv);
}

int main(int argc, char **argv)
{
	long most = argc > 2 ? strtol(argv[2], NULL, 10) : 5000;
	double first = 0, last = 0;
	prog_name(argv[0]);
	if (argc < 2 || most < 100 || chdir(argv[1]) != 0)
		die(EX_BADUSE, "usage: loop SCRATCH [MOST >= 100]");
	printf("%-28s %12s %12s %10s\n", "", "CPU/trial ms", "wall/trial ms", "peak MiB");
	const long at[] = {0, most / 5, most};
	for (int i = 0; i < 3; i++) {
		if (i) {
			/* The run after a fill writes the history of the synthetic trials: not measured. */
			fill_up(at[i] - 2 * EACH);
			iterate();
		}
		long from = newest() + 1;
		struct cost c = iterate();
		last = 1000 * c.cpu / EACH;
		first = i ? first : last;
		printf("trials %5ld to %-5ld        %12.1f %12.1f %10.1f\n", from, from + EACH - 1, last,
		       1000 * c.wall / EACH, (double)c.rss_kb / 1024);
		fflush(stdout);
	}
	struct cost q = up_to_date();
	printf("up-to-date check, %ld trials: %.2f s wall, %.2f s CPU, %.1f MiB, make says %s\n", newest(),
	       q.wall, q.cpu, (double)q.rss_kb / 1024,
	       q.rc == 0 ? "up to date" : q.rc == 1 ? "NOT up to date" : "ERROR");
	return last > 2 * first || q.cpu >= 1 || q.rc != 0; /* CPU: others may share the machine */
}
