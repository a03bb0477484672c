/*
 * killer.c - run a command again and again while killing processes of it at random.
 *
 * Starts the command, kills (SIGKILL) some process below it at some instant, starts it again when
 * it has ended, and so on until DONE exists and nothing of it runs any more. Every process that a
 * dead one leaves behind stays below us (child subreaper), so that orphans are aimed at as well.
 * Writes one JSON line per kill and per session to LOG and the output of session N to LOG.N.
 * Signals only processes that descend from itself.
 *
 * SPDX-License-Identifier: MIT
 */
#include "../../stages/lib/err.h"
#include "../../stages/lib/file.h"
#include "../../stages/lib/jsonw.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char HELP[] =
	"usage: killer --seed N --kills K --trials T --done FILE --log FILE [--limit-s S]\n"
	"              [--names A,B,...] [--every-ms N] -- COMMAND...\n"
	"\n"
	"exit: 0 the command ended its work in spite of it, 1 it did not\n";

enum { MOST = 4096, NAME = 32, ARGS = 200 };

struct process {
	pid_t pid, parent;
	unsigned long long start;
	char name[NAME];
	int zombie, ours;
};

static struct {
	unsigned long long seed;
	int kills, trials, limit_s, every_ms;
	const char *done, *log, *names;
	char **argv;
} opt = {.seed = 1, .kills = 200, .trials = 30, .limit_s = 1500,
	 .names = "make,iterate,run,propose,client,guard,unittest,tune,judge,bench,promote,checker,git,render"};

static struct process table[MOST];
static int count;
static uint64_t state;

/* splitmix64 */
static uint64_t draw(uint64_t below)
{
	uint64_t z = state += 0x9e3779b97f4a7c15u;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return (z ^ (z >> 31)) % below;
}

static int64_t now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static int proc_text(pid_t pid, const char *file, char *out, size_t size)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, file);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, out, size - 1) : -1;
	if (fd >= 0)
		close(fd);
	out[n > 0 ? n : 0] = '\0';
	return (int)n;
}

static int look(pid_t pid, struct process *p)
{
	char text[1024];
	if (proc_text(pid, "stat", text, sizeof text) <= 0)
		return -1;
	char *open = strchr(text, '('), *close = strrchr(text, ')');
	if (!open || !close)
		return -1;
	*p = (struct process){.pid = pid};
	*close = '\0';
	snprintf(p->name, sizeof p->name, "%.31s", open + 1);
	char *at = close + 2;
	p->zombie = *at == 'Z' || *at == 'X';
	p->parent = atoi(at + 2);
	for (int i = 0; i < 19 && at; i++) /* field 22 */
		at = strchr(at + 1, ' ');
	p->start = at ? strtoull(at, NULL, 10) : 0;
	return 0;
}

/* Every living process below us, into table[]; not our own copies before they call exec. */
static void scan(void)
{
	DIR *d = opendir("/proc");
	struct dirent *f;
	int all = 0, more = 1;
	while (d && (f = readdir(d)) && all < MOST)
		if (isdigit((unsigned char)f->d_name[0]) && look(atoi(f->d_name), &table[all]) == 0)
			all++;
	closedir(d);
	while (more) {
		more = 0;
		for (int i = 0; i < all; i++) {
			int mine = table[i].parent == getpid();
			for (int k = 0; k < all && !mine; k++)
				mine = table[k].ours && table[k].pid == table[i].parent;
			more |= mine && !table[i].ours;
			table[i].ours = mine;
		}
	}
	count = 0;
	for (int i = 0; i < all; i++)
		if (table[i].ours && !table[i].zombie && strcmp(table[i].name, "killer") != 0)
			table[count++] = table[i];
}

/* What the process works on: the first trials/... among its arguments. */
static void target_of(pid_t pid, char out[ARGS])
{
	char text[2048];
	int n = proc_text(pid, "cmdline", text, sizeof text);
	out[0] = '\0';
	for (char *a = text; a < text + n; a += strlen(a) + 1)
		if (strncmp(a, "trials/0", 8) == 0) {
			snprintf(out, ARGS, "%.199s", a);
			return;
		}
}

/* Is the reply of a client's request stored? reply.json appears last. */
static int stored(const char *request)
{
	char path[ARGS + 16];
	const char *slash = strrchr(request, '/');
	if (!slash)
		return 0;
	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof path, "%.*s/%s", (int)(slash - request), request,
			 i ? "reply.sse" : "reply.json");
		if (file_exists(path))
			return 1;
	}
	return 0;
}

static void put_line(struct jsonw *w)
{
	struct err e;
	jw_end(w);
	if (file_append(opt.log, buf_str(&w->out), &e))
		die_err(&e);
	jw_free(w);
}

/* 1 when it was this very process that died. */
static int strike(const struct process *p, int n, int session, const char *how)
{
	char target[ARGS];
	struct process again;
	int fd = (int)syscall(SYS_pidfd_open, p->pid, 0);
	if (fd < 0)
		return 0;
	target_of(p->pid, target);
	if (look(p->pid, &again) || again.start != p->start || again.zombie ||
	    syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0)) {
		close(fd);
		return 0;
	}
	struct pollfd f = {.fd = fd, .events = POLLIN};
	poll(&f, 1, 5000);
	close(fd);
	struct jsonw w = {0};
	jw_obj(&w, NULL);
	jw_int(&w, "kill", n);
	jw_int(&w, "session", session);
	jw_str(&w, "name", again.name);
	jw_str(&w, "target", target);
	jw_str(&w, "how", how);
	jw_bool(&w, "stored", stored(target));
	put_line(&w);
	return 1;
}

static int kill_any(int n, int session)
{
	scan();
	return count && strike(&table[draw((uint64_t)count)], n, session, "any");
}

static int closed(void)
{
	int n = 0;
	char path[64];
	for (int i = 1; i <= opt.trials; i++) {
		snprintf(path, sizeof path, "trials/%04d/promote.json", i);
		n += file_exists(path);
	}
	return n;
}

static uint64_t commas(const char *s)
{
	uint64_t n = 0;
	for (; *s; s++)
		n += *s == ',';
	return n;
}

/* Kills are spread over the whole run: sooner when they lag behind its progress, and so soon at its
 * end (2) that it cannot come to it before the last one. */
static int haste(int kills)
{
	int have = closed();
	double lag = (double)have / opt.trials - (double)kills / opt.kills;
	return have > opt.trials - 3 || lag > 0.25 ? 2 : lag > 0;
}

/* Short-lived programs are hardly ever met by chance: wait for one of them, then a little. */
static int kill_named(int n, int session)
{
	char list[400], *at;
	uint64_t pick = draw(commas(opt.names) + 1);
	snprintf(list, sizeof list, "%s", opt.names);
	const char *want = strtok_r(list, ",", &at);
	for (; pick > 0 && want; pick--)
		want = strtok_r(NULL, ",", &at);
	want = want ? want : "make";
	static const int patience[] = {1500, 700, 20};
	int64_t until = now_ms() + patience[haste(n)];
	uint64_t after = draw(2) ? draw(4000) : 0;
	while (now_ms() < until) {
		scan();
		for (int i = 0; i < count; i++)
			if (strncmp(table[i].name, want, 15) == 0) {
				struct process p = table[i];
				usleep((useconds_t)after);
				return strike(&p, n, session, "named");
			}
		usleep(300);
	}
	return kill_any(n, session);
}

static int64_t gap(int kills)
{
	static const unsigned most[] = {1000, 200, 25};
	return opt.every_ms ? opt.every_ms : (int64_t)draw(most[haste(kills)]);
}

/* While an orphan is at work it may finish the run at any moment, and `make iterate` after that is rightly a
 * new run: then the run is taken up by `make resume`, which finds nothing to do. */
static void choose_goal(void)
{
	scan();
	for (char **a = opt.argv; *a; a++)
		if (strcmp(*a, "iterate") == 0 || strcmp(*a, "resume") == 0)
			*a = count ? "resume" : "iterate";
}

static pid_t start(int session)
{
	char path[400];
	choose_goal();
	snprintf(path, sizeof path, "%s.%d", opt.log, session);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	pid_t pid = fork();
	if (pid == 0) {
		dup2(fd, 1);
		dup2(fd, 2);
		execvp(opt.argv[0], opt.argv);
		_exit(127);
	}
	close(fd);
	return pid;
}

static void end_session(int session, int kills, int status)
{
	struct jsonw w = {0};
	jw_obj(&w, NULL);
	jw_int(&w, "session", session);
	jw_int(&w, "kills", kills);
	jw_int(&w, "exit", WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
	put_line(&w);
}

static void kill_all(void)
{
	for (int round = 0; round < 100; round++) {
		scan();
		for (int i = 0; i < count; i++)
			kill(table[i].pid, SIGKILL);
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		usleep(10000);
	}
}

static int work(void)
{
	int64_t began = now_ms(), next = began + gap(0), again = 0;
	int kills = 0, session = 0, before = 0, status;
	pid_t top = 0, pid;
	for (;;) {
		while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
			if (pid == top) {
				end_session(session, kills - before, status);
				top = 0;
				/* Nobody was hit and it failed: an orphan is at work. */
				again = now_ms() + (kills == before && status ? 200 : 0);
			}
		if (file_exists(opt.done) && !top) {
			scan();
			if (!count)
				return 0;
		} else if (!top && now_ms() >= again) {
			before = kills;
			top = start(++session);
		}
		if (kills < opt.kills && now_ms() >= next) {
			kills += draw(2) ? kill_named(kills + 1, session) : kill_any(kills + 1, session);
			next = now_ms() + gap(kills);
		}
		if (now_ms() - began > (int64_t)opt.limit_s * 1000) {
			kill_all();
			fprintf(stderr, "killer: not done after %d s, %d kills\n", opt.limit_s, kills);
			return 1;
		}
		usleep(3000);
	}
}

int main(int argc, char **argv)
{
	prog_name(argv[0]);
	for (int i = 1; i < argc; i++) {
		const char *v = argv[i + 1];
		if (strcmp(argv[i], "-h") == 0)
			return fputs(HELP, stdout) < 0;
		if (strcmp(argv[i], "--") == 0) {
			opt.argv = argv + i + 1;
			break;
		}
		if (!v)
			die(EX_BADUSE, "'%s' wants a value", argv[i]);
		if (strcmp(argv[i], "--seed") == 0)
			opt.seed = strtoull(v, NULL, 10);
		else if (strcmp(argv[i], "--kills") == 0)
			opt.kills = atoi(v);
		else if (strcmp(argv[i], "--trials") == 0)
			opt.trials = atoi(v);
		else if (strcmp(argv[i], "--limit-s") == 0)
			opt.limit_s = atoi(v);
		else if (strcmp(argv[i], "--every-ms") == 0)
			opt.every_ms = atoi(v);
		else if (strcmp(argv[i], "--names") == 0)
			opt.names = v;
		else if (strcmp(argv[i], "--done") == 0)
			opt.done = v;
		else if (strcmp(argv[i], "--log") == 0)
			opt.log = v;
		else
			die(EX_BADUSE, "'%s' is no option; -h for help", argv[i]);
		i++;
	}
	if (!opt.argv || !opt.argv[0] || !opt.done || !opt.log || opt.trials < 1)
		die(EX_BADUSE, "--done, --log and a command are needed; -h for help");
	state = opt.seed;
	if (prctl(PR_SET_CHILD_SUBREAPER, 1))
		die(EX_SYS, "cannot become a subreaper");
	return work();
}
