/* Drives one emulated kernel image as a parent would, by directives in the kernel's text.
 *
 * SPDX-License-Identifier: MIT
 *
 *     drive IMAGE KERNEL.cu MODE      run it, check, exit 0 or 1 with the reason on stderr
 *     drive -e KERNEL.cu              print the entries it launches
 *     drive -t IMAGE KERNEL.cu        time it: seconds per run, best and median of 15
 *     drive -w IMAGE KERNEL.cu        the same with a WIPE before each run; its own two times follow
 *     drive -z IMAGE KERNEL.cu        400 scripts with changed bytes: each must be answered
 *
 * The image runs as in production: nothing but the calls of syscalls.h, 4 GiB of addresses.
 *
 * Directives are comment lines at the head of the kernel:
 *     // launch: ENTRY grid=X,Y,Z block=X,Y,Z shared=N coop args=o,i,w,i32:5,f32:1.5,...
 *     // residency: N   // stall_ms: N   // limit_ms: N   // stack_kib: N   // mixed
 *     // expect[MODE]: STATUS [text of the report]    (default: ok)
 *     // log: text that printf must have produced
 *     // poison-shows      (the output must differ between two poison seeds)
 *     // orders: forward   (default: all)
 *     // wiped: STATUS     (what WIPE must answer; it comes between all runs, else between some)
 * Buffers: o output (64 KiB, zero before each run), i input (64 KiB: 32-bit word k is
 * k * 2654435761 >> 8), w workspace (1 MiB, zero-filled by the script), e input that ends at
 * its page. A plan that ends ok must leave o[0] == 0 (errors found) and o[1] > 0 (checks
 * made): kernels check themselves.
 */
#include "../../stages/emu/protocol.h"
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAX_LAUNCHES = 64, MAX_ARGS = 512, OUT = 65536, IN = 65536, WORK = 1 << 20, EDGE = 4096 };

static const char *const status_names[] = {
    "ok",	    "fault_segv", "fault_fpe",	"sanitizer", "barrier_divergence", "deadlock",
    "not_emulable", "race",	  "bad_script", "trap",	     "time_limit",	   "bad_state"};

static struct emu_launch launches[MAX_LAUNCHES];
static struct emu_arg args[MAX_ARGS];
static char entries[MAX_LAUNCHES][128];
static unsigned n_launches, n_args, n_entries;
static uint32_t residency = 8, stack_kib, stall_ms, limit_ms, flags;
static char expect_status[64] = "ok", expect_text[256], expect_log[256];
static int poison_shows, forward_only, wiped;
static char wipe_status[64] = "ok";
static int fd_ro, fd_rw, fd_script;
static uint32_t *out;
static const char *mode = "fast";

static void die(const char *what)
{
	fprintf(stderr, "drive: %s\n", what);
	exit(1);
}

static unsigned entry_index(const char *name)
{
	for (unsigned i = 0; i < n_entries; i++)
		if (!strcmp(entries[i], name))
			return i;
	snprintf(entries[n_entries], sizeof entries[0], "%s", name);
	return n_entries++;
}

static void parse_dims(const char *s, uint32_t d[3])
{
	char *end = (char *)(size_t)s;
	for (int i = 0; i < 3; i++) {
		d[i] = (uint32_t)strtoul(end, &end, 10);
		if (*end != ',')
			break;
		end++;
	}
}

static void parse_arg(const char *s)
{
	struct emu_arg *a = &args[n_args++];
	double f = 0;
	long long v = 0;
	const char *colon = strchr(s, ':');
	if (colon) {
		f = strtod(colon + 1, NULL);
		v = strtoll(colon + 1, NULL, 0);
	}
	memset(a, 0, sizeof *a);
	if (strchr("oiwe", s[0]) && (!s[1] || s[1] == '+' || s[1] == ':')) {
		a->kind = EMU_ARG_POINTER;
		a->bytes = 8;
		a->buffer = (uint32_t)(strchr("oiwe", s[0]) - "oiwe");
		a->offset = s[1] ? strtoull(s + 2, NULL, 0) : 0;
	} else if (!strncmp(s, "i32:", 4)) {
		int32_t x = (int32_t)v;
		a->bytes = 4;
		memcpy(a->value, &x, 4);
	} else if (!strncmp(s, "i64:", 4)) {
		a->bytes = 8;
		memcpy(a->value, &v, 8);
	} else if (!strncmp(s, "f32:", 4)) {
		float x = (float)f;
		a->bytes = 4;
		memcpy(a->value, &x, 4);
	} else if (!strncmp(s, "f64:", 4)) {
		a->bytes = 8;
		memcpy(a->value, &f, 8);
	} else if (!strncmp(s, "null", 4)) {
		a->bytes = 8;
	} else if (!strncmp(s, "bytes:", 6)) { /* a struct of N bytes: 0, 1, 2, ... */
		a->bytes = (uint32_t)v;
		for (unsigned i = 0; i < a->bytes && i < EMU_MAX_ARG_BYTES; i++)
			a->value[i] = (uint8_t)i;
	} else {
		die("unknown argument");
	}
}

static void parse_launch(char *s)
{
	struct emu_launch *l = &launches[n_launches++];
	memset(l, 0, sizeof *l);
	char *save, *word = strtok_r(s, " \n", &save);
	if (!word)
		die("launch without an entry");
	l->entry = entry_index(word);
	for (int i = 0; i < 3; i++)
		l->grid[i] = l->block[i] = l->cluster[i] = 1;
	l->first_arg = n_args;
	while ((word = strtok_r(NULL, " \n", &save))) {
		if (!strncmp(word, "grid=", 5))
			parse_dims(word + 5, l->grid);
		else if (!strncmp(word, "block=", 6))
			parse_dims(word + 6, l->block);
		else if (!strncmp(word, "cluster=", 8))
			parse_dims(word + 8, l->cluster);
		else if (!strncmp(word, "shared=", 7))
			l->shared_bytes = (uint32_t)strtoul(word + 7, NULL, 0);
		else if (!strcmp(word, "coop"))
			l->flags |= EMU_LAUNCH_COOPERATIVE;
		else if (!strncmp(word, "args=", 5)) {
			char *in, *a = strtok_r(word + 5, ",", &in);
			for (; a; a = strtok_r(NULL, ",", &in))
				parse_arg(a);
		} else {
			die("unknown word in a launch");
		}
	}
	l->n_args = n_args - l->first_arg;
}

static void parse_expect(char *s)
{
	s[strcspn(s, "\n")] = 0;
	size_t n = strcspn(s, " ");
	snprintf(expect_status, sizeof expect_status, "%.*s", (int)n, s);
	snprintf(expect_text, sizeof expect_text, "%s", s[n] ? s + n + 1 : "");
}

static void parse(const char *path)
{
	char line[2048], key[64];
	FILE *f = fopen(path, "r");
	if (!f)
		die("cannot open the kernel");
	snprintf(key, sizeof key, "// expect[%s]: ", mode);
	while (fgets(line, sizeof line, f)) {
		if (!strncmp(line, "// launch: ", 11))
			parse_launch(line + 11);
		else if (!strncmp(line, "// residency: ", 14))
			residency = (uint32_t)strtoul(line + 14, NULL, 10);
		else if (!strncmp(line, "// stall_ms: ", 13))
			stall_ms = (uint32_t)strtoul(line + 13, NULL, 10);
		else if (!strncmp(line, "// stack_kib: ", 14))
			stack_kib = (uint32_t)strtoul(line + 14, NULL, 10);
		else if (!strncmp(line, "// limit_ms: ", 13))
			limit_ms = (uint32_t)strtoul(line + 13, NULL, 10);
		else if (!strncmp(line, "// mixed", 8))
			flags |= EMU_SCRIPT_MIXED_BARRIERS;
		else if (!strncmp(line, "// expect: ", 11) || !strncmp(line, key, strlen(key)))
			parse_expect(strchr(line, ':') + 2);
		else if (!strncmp(line, "// log: ", 8))
			snprintf(expect_log, sizeof expect_log, "%.*s",
				 (int)strcspn(line + 8, "\n"), line + 8);
		else if (!strncmp(line, "// poison-shows", 15))
			poison_shows = 1;
		else if (!strncmp(line, "// wiped: ", 10)) {
			wiped = 1;
			snprintf(wipe_status, sizeof wipe_status, "%.*s",
				 (int)strcspn(line + 10, "\n"), line + 10);
		} else if (!strncmp(line, "// orders: forward", 18))
			forward_only = 1;
	}
	fclose(f);
}

static int memory(const char *name, size_t bytes)
{
	int fd = memfd_create(name, 0);
	if (fd < 0 || ftruncate(fd, (off_t)bytes))
		die("cannot make a memfd");
	return fd;
}

static void make_files(void)
{
	static struct emu_buffer b[4] = {
	    {EMU_FD_RW, 0, 0, OUT, 0x3000000000},
	    {EMU_FD_RO, 0, 0, IN, 0x3100000000},
	    {EMU_FD_RW, 0, OUT, WORK, 0x3200000000},
	    {EMU_FD_RO, 0, IN + 4096 - 1000, 1000, 0x3300000000 + 4096 - 1000}};
	struct emu_zero z = {2, 0, 0, WORK};
	int ro = memory("ro", IN + EDGE);
	fd_rw = memory("rw", OUT + WORK);
	fd_script = memory("script", 0);
	uint32_t *in = mmap(NULL, IN + EDGE, PROT_READ | PROT_WRITE, MAP_SHARED, ro, 0);
	for (uint32_t k = 0; k < (IN + EDGE) / 4; k++)
		in[k] = k * 2654435761u >> 8;
	munmap(in, IN + EDGE);
	char path[64];
	snprintf(path, sizeof path, "/proc/self/fd/%d", ro);
	fd_ro = open(path, O_RDONLY);
	out = mmap(NULL, OUT + WORK, PROT_READ | PROT_WRITE, MAP_SHARED, fd_rw, 0);
	struct emu_script s = {.magic = EMU_MAGIC,
			       .version = EMU_VERSION,
			       .flags = flags,
			       .n_buffers = 4,
			       .n_zeros = 1,
			       .n_launches = n_launches,
			       .n_args = n_args,
			       .sm_count = 4,
			       .residency = residency,
			       .max_shared = 227 * 1024,
			       .stall_ms = stall_ms,
			       .limit_ms = limit_ms,
			       .stack_kib = stack_kib};
	s.bytes = (uint32_t)(sizeof s + sizeof b + sizeof z + n_launches * sizeof *launches +
			     n_args * sizeof *args);
	if (write(fd_script, &s, sizeof s) < 0 || write(fd_script, b, sizeof b) < 0 ||
	    write(fd_script, &z, sizeof z) < 0 ||
	    write(fd_script, launches, n_launches * sizeof *launches) < 0 ||
	    write(fd_script, args, n_args * sizeof *args) < 0)
		die("cannot write the script");
}

/* Only what syscalls.h lists, and execve; anything else kills. */
static void confine(void)
{
	static const unsigned allowed[] = {
#define EMU_CALL(name) SYS_##name,
#ifdef __x86_64__
#define EMU_CALL_X86(name) SYS_##name,
#else
#define EMU_CALL_X86(name)
#endif
#include "../../stages/emu/syscalls.h"
	    SYS_execve};
	enum { N = sizeof allowed / sizeof *allowed };
	struct sock_filter f[2 * N + 2];
	unsigned n = 0;
	f[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
					      offsetof(struct seccomp_data, nr));
	for (unsigned i = 0; i < N; i++) {
		f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, allowed[i], 0, 1);
		f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	}
	f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	struct sock_fprog p = {(unsigned short)n, f};
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p))
		_exit(126);
}

struct child {
	pid_t pid;
	int to, from;
};

static struct child start(const char *image)
{
	int down[2], up[2];
	if (pipe(down) || pipe(up))
		die("cannot make pipes");
	struct child c = {fork(), down[1], up[0]};
	if (!c.pid) {
		int from[5] = {down[0], up[1], fd_ro, fd_rw, fd_script};
		for (int i = 0; i < 5; i++)
			from[i] = fcntl(from[i], F_DUPFD, 100);
		for (int i = 0; i < 5; i++)
			dup2(from[i], 3 + i);
		for (int i = 8; i < 256; i++)
			close(i);
		char *argv[] = {(char *)(size_t)image, "--fd-in", "3", "--fd-out", "4", NULL};
		char *env[] = {NULL};
		struct rlimit space = {(rlim_t)4 << 30, (rlim_t)4 << 30};
		setrlimit(RLIMIT_AS, &space);
		confine();
		execve(image, argv, env);
		_exit(127);
	}
	close(down[0]);
	close(up[1]);
	return c;
}

static char text[EMU_MAX_TEXT + 1], print[EMU_MAX_LOG + 1];

static int read_all(int fd, void *p, size_t n)
{
	while (n) {
		struct pollfd wait = {fd, POLLIN, 0};
		if (poll(&wait, 1, 60000) <= 0)
			return 0;
		ssize_t r = read(fd, p, n);
		if (r <= 0)
			return 0;
		p = (char *)p + r;
		n -= (size_t)r;
	}
	return 1;
}

static struct emu_reply command(struct child *c, uint32_t kind, uint32_t order, uint64_t seed,
				uint64_t poison)
{
	struct emu_command m = {EMU_MAGIC, kind, order, 0, seed, poison};
	struct emu_reply r;
	if (write(c->to, &m, sizeof m) != sizeof m || !read_all(c->from, &r, sizeof r) ||
	    r.text_bytes > EMU_MAX_TEXT || r.log_bytes > EMU_MAX_LOG ||
	    !read_all(c->from, text, r.text_bytes) || !read_all(c->from, print, r.log_bytes)) {
		int st = 0;
		kill(c->pid, 9);
		waitpid(c->pid, &st, 0);
		fprintf(stderr, "drive: the image died or hangs (wait status 0x%x)\n", st);
		exit(1);
	}
	text[r.text_bytes] = 0;
	print[r.log_bytes] = 0;
	return r;
}

static void check(const struct emu_reply *r, uint32_t order)
{
	const char *name = r->status < 12 ? status_names[r->status] : "?";
	if (strcmp(name, expect_status) || !strstr(text, expect_text)) {
		fprintf(stderr, "drive: order %u: got %s, wanted %s '%s'; report: %s", order, name,
			expect_status, expect_text, *text ? text : "none\n");
		exit(1);
	}
	if (r->status == EMU_OK && (out[0] || (!out[1] && !poison_shows))) {
		fprintf(stderr,
			"drive: order %u: %u errors in %u checks, first: %u %u %u %u; log: %s\n",
			order, out[0], out[1], out[2], out[3], out[4], out[5], print);
		exit(1);
	}
	if (*expect_log && !strstr(print, expect_log)) {
		fprintf(stderr, "drive: log lacks '%s': %s\n", expect_log, print);
		exit(1);
	}
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static int measure(const char *image, int wipes)
{
	double t[15], w[15];
	struct child c = start(image);
	command(&c, EMU_CMD_MAP, 0, 0, 0);
	struct emu_reply r = {0};
	for (int i = -2; i < 15; i++) {
		double t0 = now();
		if (wipes && command(&c, EMU_CMD_WIPE, 0, 0, 0).status) {
			fputs(text, stderr);
			return 1;
		}
		if (i >= 0)
			w[i] = now() - t0;
		t0 = now();
		r = command(&c, EMU_CMD_RUN, 0, 0, 1);
		if (r.status) {
			fputs(text, stderr);
			return 1;
		}
		if (i >= 0)
			t[i] = now() - t0;
	}
	qsort(t, 15, sizeof *t, by_value);
	printf("%.9f %.9f %llu %llu", t[0], t[7], (unsigned long long)r.switches,
	       (unsigned long long)r.block_switches);
	qsort(w, 15, sizeof *w, by_value);
	if (wipes)
		printf(" %.9f %.9f", w[0], w[7]);
	putchar('\n');
	return 0;
}

/* A damaged script is answered with ok or bad_script, or the image says what else is wrong;
 * it never dies of it. */
static int damage(const char *image)
{
	struct stat st;
	fstat(fd_script, &st);
	size_t n = (size_t)st.st_size;
	uint8_t *script = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED, fd_script, 0);
	uint8_t *good = malloc(n);
	memcpy(good, script, n);
	uint32_t seed = 1, refused = 0;
	for (int i = 0; i < 400; i++) {
		memcpy(script, good, n);
		for (int k = 0; k <= i % 3; k++) {
			seed = seed * 1664525u + 1013904223u;
			/* mostly in the header, where every byte counts */
			size_t at = seed >> 8 & 1 ? (seed >> 9) % sizeof(struct emu_script)
						  : (seed >> 9) % n;
			script[at] = i & 4 ? 0xff : (uint8_t)(script[at] + (seed >> 24) + 1);
		}
		struct child c = start(image);
		struct emu_reply r = command(&c, EMU_CMD_MAP, 0, 0, 0);
		if (r.status && r.status != EMU_BAD_SCRIPT && r.status != EMU_NOT_EMULABLE)
			die("a damaged script gave another status");
		refused += r.status != EMU_OK;
		kill(c.pid, SIGKILL);
		waitpid(c.pid, NULL, 0);
		close(c.to);
		close(c.from);
	}
	printf("%u of 400 refused\n", refused);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "-e")) {
		parse(argv[2]);
		for (unsigned i = 0; i < n_entries; i++)
			puts(entries[i]);
		return 0;
	}
	int timing = argc == 4 && argv[1][0] == '-';
	if (argc != 4)
		return 2;
	if (!timing)
		mode = argv[3];
	parse(timing ? argv[3] : argv[2]);
	make_files();
	if (timing)
		return argv[1][1] == 'z' ? damage(argv[2]) : measure(argv[2], argv[1][1] == 'w');
	struct child c = {0};
	uint32_t seen = 0;
	for (uint32_t i = 0; i < (forward_only ? 2 : 5); i++) {
		uint32_t order = forward_only ? 0 : i < 2 ? i : EMU_ORDER_SHUFFLE;
		if (!c.pid) {
			c = start(argv[1]);
			struct emu_reply r = command(&c, EMU_CMD_MAP, 0, 0, 0);
			if (r.status) {
				check(&r, 99);
				return 0;
			}
		}
		if (i == 1 &&
		    command(&c, EMU_CMD_MAP, 0, 0, 0).status) /* again: scripts may change */
			die("the second MAP fails");
		memset(out, 0, OUT);
		struct emu_reply r = command(&c, EMU_CMD_RUN, order, i, i * 77);
		check(&r, order);
		uint32_t hash = 0;
		for (int k = 0; k < OUT / 4; k++)
			hash = hash * 31 + out[k];
		if (poison_shows && i && hash == seen)
			die("the poison seed does not show in the output");
		seen = hash;
		if (r.status) {
			int st;
			waitpid(c.pid, &st, 0);
			close(c.to);
			close(c.from);
			if (!WIFEXITED(st) || WEXITSTATUS(st) != 1)
				die("the image did not exit with code 1 after its report");
			c.pid = 0;
		} else if (wiped || i != 2) {
			r = command(&c, EMU_CMD_WIPE, 0, 0, 0);
			if (r.status > EMU_BAD_STATE || strcmp(status_names[r.status], wipe_status)) {
				fprintf(stderr, "drive: WIPE got %u, wanted %s: %s", r.status,
					wipe_status, text);
				return 1;
			}
			if (r.status) {
				waitpid(c.pid, NULL, 0);
				close(c.to);
				close(c.from);
				c.pid = 0;
			}
		}
	}
	if (c.pid) {
		command(&c, EMU_CMD_QUIT, 0, 0, 0);
		int st;
		waitpid(c.pid, &st, 0);
		if (!WIFEXITED(st) || WEXITSTATUS(st))
			die("the image did not exit with code 0");
	}
	return 0;
}
