/*
 * loop.c - what one trial costs the machine, at trial 1, 1000 and 5000.
 *
 * Works in a scratch copy of the repository (DEVICE=sim, PROPOSER=sweep): real runs, with closed
 * synthetic trials in between, made by copying a real one under new ids. Measures CPU (user +
 * system, of make and all that it starts) and the largest resident process. A repeat is a run of
 * one trial and a run of 1 + EACH: their difference over EACH is what a trial costs, the rest of
 * the first what a run costs however long it is. Before each repeat the index forgets what was
 * tried, so that the sweep has work. Then one run of MOST trials, stopped after some, for the
 * price of length itself, and the up-to-date check over all trials. Prints a table: median, and
 * least and most of the repeats.
 *
 *   loop SCRATCH [MOST [REPEATS]]        SCRATCH: made by loop.sh; 5000 and 5 by default
 *
 * Ends with 1 when a median of the CPU of a trial is above 60 ms, the up-to-date check takes a
 * second of CPU or more, or the memory of trials grows by more than half from the first to the last.
 *
 * SPDX-License-Identifier: MIT
 */
#include "../../stages/lib/file.h"
#include "../../stages/lib/trial.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { EACH = 10, REPEATS_MOST = 99, LONG_TRIALS = 12 };

struct cost {
	double cpu;
	long rss_kb;
	int rc;
};

static double seconds(struct timeval t)
{
	return (double)t.tv_sec + (double)t.tv_usec * 1e-6;
}

static pid_t start(char *const *argv)
{
	pid_t pid = fork();
	if (pid == 0) {
		int fd = open("loop.log", O_WRONLY | O_CREAT | O_APPEND, 0644);
		dup2(fd, 1);
		dup2(fd, 2);
		execvp(argv[0], argv);
		_exit(127);
	}
	if (pid < 0)
		die(EX_SYS, "cannot run %s: %s", argv[0], strerror(errno));
	return pid;
}

static struct cost finish(pid_t pid)
{
	struct cost c = {.rc = -1};
	struct rusage u;
	int status;
	if (wait4(pid, &status, 0, &u) != pid)
		die(EX_SYS, "cannot wait: %s", strerror(errno));
	c.cpu = seconds(u.ru_utime) + seconds(u.ru_stime);
	c.rss_kb = u.ru_maxrss;
	c.rc = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
	return c;
}

static struct cost iterate(long trials)
{
	char n[32] = "--resume"; /* 0 trials: those of the unfinished run */
	if (trials)
		snprintf(n, sizeof n, "--N=%ld", trials);
	/* iterate itself, as `make iterate` calls it: make would look at the sources first. */
	char *argv[] = {".build/bin/iterate", "--SPEC=vector_add", "--DEVICE=sim", "--PROPOSER=sweep", n,
			NULL};
	struct cost c = finish(start(argv));
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
	return finish(start(argv));
}

/* --- repeats --- */

struct figure {
	double v[REPEATS_MOST];
	int n;
};

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double median(struct figure *f)
{
	qsort(f->v, (size_t)f->n, sizeof *f->v, by_value);
	return (f->v[(f->n - 1) / 2] + f->v[f->n / 2]) / 2;
}

/* Every candidate of the index becomes one that nobody proposes. */
static void forget_tried(void)
{
	struct buf all = BUF_INIT;
	struct err e;
	if (!file_exists("trials/index.tsv"))
		return;
	if (file_read("trials/index.tsv", 1 << 28, &all, &e) != 0)
		die_err(&e);
	for (char *p = all.data; (p = strchr(p, '\t')) != NULL;) {
		p++;
		if (strspn(p, "0123456789abcdef") == 64)
			memset(p, '0', 64);
	}
	put("trials/index.tsv", &all);
	buf_free(&all);
}

/* A record without trials. The report goes too: it would have to be as young as the record. */
static void start_afresh(void)
{
	static const char *const dirs[] = {"trials", "champion", "reports"};
	struct err e;
	for (int i = 0; i < 3; i++)
		if (dir_remove(dirs[i], &e) || dir_make(dirs[i], &e))
			die_err(&e);
}

/* A new run of `most` trials, stopped when `trials` of them are closed. */
static struct cost stopped_after(long most, long trials)
{
	char n[32], path[TRIAL_PATH], id[TRIAL_ID];
	snprintf(n, sizeof n, "--N=%ld", most);
	char *argv[] = {".build/bin/iterate", "--SPEC=vector_add", "--DEVICE=sim", "--PROPOSER=sweep", n,
			"--NEW=1", NULL};
	trial_id(id, newest() + trials);
	pid_t pid = start(argv);
	trial_step_path(path, id, STEP_PROMOTE);
	for (int i = 0; i < 60000 && !file_exists(path); i++)
		nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
	kill(pid, SIGTERM);
	struct cost c = finish(pid);
	if (!file_exists(path))
		die(EX_HARNESS, "a run of %ld trials did not get to trial %s", most, id);
	return c;
}

struct row {
	struct figure trial, run;
	long rss_kb, steps_kb; /* most of all processes; of a run before its report */
};

static void repeat(struct row *r, int fresh)
{
	if (fresh)
		start_afresh();
	forget_tried();
	/* Memory without the report, which holds a row for each trial there is. */
	struct cost steps = stopped_after(2 * EACH, EACH);
	if (steps.rss_kb > r->steps_kb)
		r->steps_kb = steps.rss_kb;
	iterate(0);
	if (fresh)
		start_afresh();
	forget_tried();
	struct cost one = iterate(1), many = iterate(1 + EACH);
	double each = 1000 * (many.cpu - one.cpu) / EACH;
	r->trial.v[r->trial.n++] = each;
	r->run.v[r->run.n++] = 1000 * one.cpu - each;
	if (many.rss_kb > r->rss_kb)
		r->rss_kb = many.rss_kb;
}

static double print_row(const char *name, struct row *r)
{
	double t = median(&r->trial), u = median(&r->run);
	printf("%-14s %6.1f (%5.1f to %5.1f) %8.1f (%5.1f to %5.1f) %8.1f", name, t, r->trial.v[0],
	       r->trial.v[r->trial.n - 1], u, r->run.v[0], r->run.v[r->run.n - 1],
	       (double)r->steps_kb / 1024);
	printf(r->rss_kb ? " %8.1f\n" : "        -\n", (double)r->rss_kb / 1024);
	fflush(stdout);
	return t;
}

/* The price of being long: trials in the middle of a run of `most`, against none of it. */
static void long_run(struct row *r, long most)
{
	start_afresh();
	struct cost few = stopped_after(most, 2);
	start_afresh();
	struct cost more = stopped_after(most, 2 + LONG_TRIALS);
	double each = 1000 * (more.cpu - few.cpu) / LONG_TRIALS;
	r->trial.v[r->trial.n++] = each;
	r->run.v[r->run.n++] = 1000 * few.cpu - 2 * each;
	if (more.rss_kb > r->steps_kb)
		r->steps_kb = more.rss_kb;
}

static int up_to_date_row(int repeats)
{
	struct figure f = {0};
	struct cost q = {0};
	for (int i = 0; i < repeats; i++) {
		q = up_to_date();
		f.v[f.n++] = q.cpu;
		if (q.rc != 0)
			break;
	}
	double m = median(&f);
	printf("up-to-date check, %ld trials: %.2f s CPU (%.2f to %.2f), %.1f MiB, make says %s\n",
	       newest(), m, f.v[0], f.v[f.n - 1], (double)q.rss_kb / 1024,
	       q.rc == 0 ? "up to date" : q.rc == 1 ? "NOT up to date" : "ERROR");
	return m >= 1 || q.rc != 0;
}

int main(int argc, char **argv)
{
	long most = argc > 2 ? strtol(argv[2], NULL, 10) : 5000;
	int repeats = argc > 3 ? atoi(argv[3]) : 5, bad = 0;
	const long at[] = {1, most / 5, most};
	static struct row row[3], longest;
	char name[40];
	prog_name(argv[0]);
	if (argc < 2 || most < 200 || repeats < 1 || repeats > REPEATS_MOST || chdir(argv[1]) != 0)
		die(EX_BADUSE, "usage: loop SCRATCH [MOST >= 200 [REPEATS 1..%d]]", REPEATS_MOST);
	sleep(2); /* programs younger than this are hashed by every process again (tool.c) */
	iterate(1);
	printf("CPU in ms: median (least to most) of %d repeats\n", repeats);
	printf("%-14s %24s %26s %8s %8s\n", "from trial", "a trial", "a run besides", "peak MiB",
	       "+ report");
	for (int i = 0; i < repeats; i++)
		long_run(&longest, most);
	for (int i = 0; i < 3; i++) {
		if (i) {
			/* The run after a fill writes the history of the synthetic trials: not measured. */
			fill_up(at[i] - 1);
			iterate(1);
		}
		for (int k = 0; k < repeats; k++)
			repeat(&row[i], i == 0);
		snprintf(name, sizeof name, "%ld", at[i]);
		bad += print_row(name, &row[i]) > 60;
	}
	snprintf(name, sizeof name, "1, N=%ld", most);
	bad += print_row(name, &longest) > 60;
	bad += up_to_date_row(repeats);
	bad += row[2].steps_kb > row[0].steps_kb * 3 / 2;
	return bad != 0;
}
