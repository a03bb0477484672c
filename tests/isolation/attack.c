/*
 * attack.c - run every attack of hostile.c inside each confinement and say in TAP which held.
 *
 * usage: attack HOSTILE SCRATCH DRIVER
 * HOSTILE is the built hostile.c, SCRATCH an empty folder of ours, DRIVER a folder with the same as a
 * CUDA driver (attack_roles.c). Each attack is first known to work unconfined where that is harmless
 * (control), so that a refusal means something.
 *
 * SPDX-License-Identifier: MIT
 */
#include "attack.h"

#include "child_call.h"
#include "file.h"
#include "hash.h"
#include "spawn.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

const char *hostile, *scratch, *driver;
char me[16], secret[PATH_MAX], planted[PATH_MAX], verdict[PATH_MAX];
static char sha[HASH_HEX], box_tmp[PATH_MAX];
static int tests, failures;

void say(int good, const char *where, const char *attack, const char *arg, const char *how)
{
	tests++;
	failures += !good;
	printf("%sok %d - %s: %s %s: %s\n", good ? "" : "not ", tests, where, attack, arg ? arg : "", how);
}

/* Processes of the hostile program that are still alive. */
static int left_over(void)
{
	int n = 0;
	DIR *d = opendir("/proc");
	for (struct dirent *x; d && (x = readdir(d));) {
		char path[300], target[PATH_MAX] = "";
		snprintf(path, sizeof path, "/proc/%s/exe", x->d_name);
		ssize_t len = readlink(path, target, sizeof target - 1);
		if (len > 0 && strstr(target, "hostile"))
			n++;
	}
	if (d)
		closedir(d);
	return n;
}

int left_over_soon(void)
{
	int n = left_over();
	for (int i = 0; i < 100 && n; i++, n = left_over())
		usleep(10000);
	return n;
}

/* --- an image --- */

/* Returns the reply: 'Y', 'N' or 0 when it died first. */
static int image_run(const char *attack, const char *arg, struct child_end *end, char *layers)
{
	struct child c;
	struct err e = {0};
	char reply = 0;
	const char *args[] = {attack, arg, NULL};
	struct child_request q = {.image = hostile, .sha256 = sha, .args = args, .cpu = -1, .wall_s = 20,
				  .cpu_s = 1, .memory = 256u << 20};
	memset(end, 0, sizeof *end);
	if (child_start(&q, &c, &e)) {
		printf("# %s\n", e.text);
		return 'E';
	}
	if (layers)
		snprintf(layers, CONFINE_LIST, "%s", c.isolation);
	for (;;) {
		struct pollfd f = {.fd = c.from, .events = POLLIN};
		if (poll(&f, 1, 20) > 0)
			break;
		child_over(&c);
	}
	if (read(c.from, &reply, 1) != 1)
		reply = 0;
	return child_wait(&c, -1, end, &e) ? 'E' : reply;
}

void image_attack(const char *attack, const char *arg)
{
	struct child_end end;
	int reply = image_run(attack, arg, &end, NULL);
	/* a program that was ended before it could boast was stopped */
	int held = reply == 'N' || (reply == 0 && (end.signal || end.timed_out));
	say(held, "image", attack, arg, reply == 'Y' ? "it worked" : end.words);
	child_end_free(&end);
}

static void image_call(const char *name, long number)
{
	char text[16];
	struct child_end end;
	snprintf(text, sizeof text, "%ld", number);
	int reply = image_run("call", text, &end, NULL);
	say(reply == 0 && end.forbidden, "image", "call", name, end.words);
	child_end_free(&end);
}

static void image_ends(const char *attack, const char *arg, const char *words)
{
	struct child_end end;
	int reply = image_run(attack, arg, &end, NULL);
	say(reply == 0 && strcmp(end.words, words) == 0, "image", attack, arg, end.words);
	child_end_free(&end);
}

static void image_flood(void)
{
	struct child_end end;
	image_run("flood", "1000", &end, NULL);
	say(end.log.len <= CHILD_LOG_MAX, "image", "flood", "4 MB of log", "kept within bounds");
	child_end_free(&end);
}

static void image_all(void)
{
	struct child_end end;
	char layers[CONFINE_LIST] = "";
	image_run("nothing", NULL, &end, layers);
	child_end_free(&end);
	printf("# image layers: %s\n", layers);
	say(confine_minimum(layers), "image", "minimum", "of design.md 3", layers);
	const char *table[][2] = {
		{"read", "/etc/passwd"}, {"read", secret}, {"read", "Makefile"}, {"read", "/proc/self/maps"},
		{"read", "/proc/cpuinfo"}, {"read", planted}, {"list", "/"}, {"list", "/proc"}, {"list", "."}, {"stat", "/etc/passwd"},
		{"create", verdict}, {"append", secret}, {"unlink", secret}, {"link", verdict},
		{"create", "/dev/shm/x"}, {"create", "/tmp/x"}, {"environ", me}, {"maps", me}, {"mem", me},
		{"environ", "1"}, {"vm_read", me}, {"ptrace", me}, {"traceme", NULL}, {"signal", me},
		{"signal", "-1"}, {"inet", NULL}, {"unix", NULL}, {"netlink", NULL}, {"fork", NULL}, {"thread", NULL},
		{"exec", "/bin/sh"}, {"exec", "/proc/self/exe"}, {"exec_again", NULL}, {"inherited", "4"},
		{"reopen", "3"}, {"memory", "1"}, {"shared_memory", "1"}, {"sysv", NULL}, {"memfd", NULL},
		{"code", NULL}, {"mount", NULL}, {"unshare", NULL}, {"newuser", NULL}, {"chroot", NULL},
		{"setuid", NULL}, {"tty", NULL}, {"daemon", NULL}, {"bomb", "100"},
	};
	for (size_t i = 0; i < sizeof table / sizeof *table; i++)
		image_attack(table[i][0], table[i][1]);
	const struct {
		const char *name;
		long nr;
	} calls[] = {
		{"bpf", SYS_bpf}, {"io_uring_setup", SYS_io_uring_setup}, {"userfaultfd", SYS_userfaultfd},
		{"keyctl", SYS_keyctl}, {"perf_event_open", SYS_perf_event_open}, {"kexec_load", SYS_kexec_load},
		{"setns", SYS_setns}, {"pidfd_open", SYS_pidfd_open}, {"clone3", SYS_clone3},
		{"open_by_handle_at", SYS_open_by_handle_at}, {"shmat", SYS_shmat}, {"mq_open", SYS_mq_open},
		{"personality", SYS_personality}, {"init_module", SYS_init_module}, {"seccomp", SYS_seccomp},
	};
	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
		image_call(calls[i].name, calls[i].nr);
	image_ends("spin", NULL, "processor time limit");
	image_ends("crash", NULL, "signal 11 (Segmentation fault)");
	image_flood();
	say(left_over_soon() == 0, "image", "survivors", NULL, "none is left");
}

/* A process that works on after its reply is seen by its processor time. */
static void image_late_work(void)
{
	struct child c;
	struct err e = {0};
	double before = 0, after = 0;
	struct child_end end;
	struct child_request q = {.image = hostile, .sha256 = sha, .args = (const char *const[]){"spin", NULL}, .cpu = -1};
	if (child_start(&q, &c, &e) == 0) {
		usleep(50000);
		int known = child_cpu(&c, &before);
		for (int i = 0; i < 100 && after - before <= 0.02; i++) { /* a busy machine gives it little */
			usleep(100000);
			known |= child_cpu(&c, &after);
		}
		say(known == 0 && after - before > 0.02, "image", "late work", NULL, "seen by its clock");
		child_kill(&c);
		child_wait(&c, -1, &end, &e);
		child_end_free(&end);
	}
	q.sha256 = "0000000000000000000000000000000000000000000000000000000000000000";
	say(child_start(&q, &c, &e) != 0 && e.code == EX_BADINPUT, "image", "swapped file", NULL, e.text);
}

/* --- the box's and the commands' confinement --- */

static int confined(const char *where, enum confine_calls calls, const char *attack, const char *arg,
		    struct spawn_result *r)
{
	char dir[PATH_MAX];
	struct err e = {0};
	snprintf(dir, sizeof dir, "%s", hostile);
	*strrchr(dir, '/') = '\0';
	const struct confine_path paths[] = {
		{"/usr", NULL, CONFINE_EXEC, 0}, {"/lib", NULL, CONFINE_EXEC, 0}, {"/lib64", NULL, CONFINE_EXEC, 0},
		{"/bin", NULL, CONFINE_EXEC, 0}, {"/dev/null", NULL, CONFINE_WRITE, 0},
		{hostile, NULL, CONFINE_EXEC, 0}, {box_tmp, NULL, CONFINE_PRIVATE, 64u << 20},
	};
	const struct confine c = {
		.calls = calls, .paths = paths, .path_count = sizeof paths / sizeof *paths,
		.namespaces = CONFINE_NS_ALL, .proc = calls == CONFINE_CALLS_COMMAND,
		.limits = {.space = 512u << 20, .cpu_s = 2, .file_bytes = 32u << 20, .files = 64, .processes = 64}};
	const struct spawn_request q = {
		.argv = (const char *const[]){hostile, attack, arg, NULL}, .cwd = "/", .confine = &c,
		.err = SPAWN_CAPTURE, .err_cap = 1000, .wall_s = 2};
	if (spawn_run(&q, r, &e)) {
		say(0, where, attack, arg, e.text);
		return -1;
	}
	return 0;
}

void attack_one(const char *where, enum confine_calls calls, const char *attack, const char *arg)
{
	struct spawn_result r;
	char words[96];
	if (confined(where, calls, attack, arg, &r))
		return;
	say(r.code != 0, where, attack, arg, r.code == 0 ? "it worked" : spawn_words(&r, words));
	spawn_result_free(&r);
}

static void survivors(const char *where, enum confine_calls calls)
{
	struct spawn_result r;
	if (confined(where, calls, "daemon", NULL, &r))
		return;
	say(left_over_soon() == 0, where, "daemon", "survive the kill", "none is left");
	spawn_result_free(&r);
	if (confined(where, calls, "sleep", "60", &r))
		return;
	say(r.timed_out && left_over_soon() == 0, where, "sleep", "60", "killed in time");
	spawn_result_free(&r);
}

static void confined_all(const char *where, enum confine_calls calls)
{
	struct spawn_result r;
	char disk[PATH_MAX];
	if (confined(where, calls, "nothing", NULL, &r))
		return;
	printf("# %s layers: %s\n", where, r.layers);
	say(confine_minimum(r.layers), where, "minimum", "of design.md 3", r.layers);
	int view = confine_has(r.layers, "mountns");
	spawn_result_free(&r);
	snprintf(disk, sizeof disk, "%.4000s/disk", box_tmp);
	const char *table[][2] = {
		{"read", "/etc/passwd"}, {"read", secret}, {"read", "Makefile"}, {"read", planted}, {"list", "/etc"},
		{"list", scratch}, {"create", verdict}, {"append", secret}, {"unlink", secret}, {"link", verdict},
		{"create", "/dev/shm/x"}, {"create", "/usr/x"}, {"environ", me}, {"mem", me}, {"maps", me}, {"vm_read", me},
		{"ptrace", me}, {"signal", me}, {"inet", NULL}, {"netlink", NULL}, {"inherited", "2"},
		{"memory", "1"}, {"disk", disk}, {"write_exec", box_tmp}, {"mount", NULL}, {"unshare", NULL},
		{"newuser", NULL}, {"chroot", NULL}, {"setuid", NULL}, {"tty", NULL}, {"bomb", "4000"},
	};
	for (size_t i = 0; i < sizeof table / sizeof *table; i++)
		attack_one(where, calls, table[i][0], table[i][1]);
	/* Landlock alone hides contents, not existence: known, and the layer list tells */
	if (view)
		attack_one(where, calls, "stat", secret);
	if (view && calls == CONFINE_CALLS_BOX)
		attack_one(where, calls, "read", "/proc/cpuinfo");
	if (calls == CONFINE_CALLS_BOX)
		attack_one(where, calls, "unix", NULL);
	survivors(where, calls);
}

/* --- control --- */

static void control(const char *attack, const char *arg)
{
	struct spawn_result r;
	struct err e = {0};
	const struct spawn_request q = {.argv = (const char *const[]){hostile, attack, arg, NULL}, .wall_s = 60};
	if (spawn_run(&q, &r, &e))
		die_err(&e);
	say(r.code == 0, "control", attack, arg, "works when nothing stops it");
	spawn_result_free(&r);
}

static void control_all(void)
{
	const char *table[][2] = {
		{"read", "/etc/passwd"}, {"read", secret}, {"read", planted}, {"create", verdict}, {"append", secret}, {"environ", me},
		{"maps", me}, {"inet", NULL}, {"unix", NULL}, {"fork", NULL}, {"code", NULL}, {"memfd", NULL}, {"signal", me},
		{"list", "/proc"}, {"stat", secret}, {"sysv", NULL}, {"write_exec", box_tmp}, {"memory", "1"},
	};
	for (size_t i = 0; i < sizeof table / sizeof *table; i++)
		control(table[i][0], table[i][1]);
	unlink(verdict);
}

/* Another program of ours that holds secrets, in the eyes of everything that is confined. */
static void victim(const char *name, const char *pid)
{
	static const char *const looks[] = {"environ", "maps", "mem", "vm_read", "ptrace", "signal", "open_files"};
	char where[3][64];
	snprintf(where[0], sizeof where[0], "image against %s", name);
	snprintf(where[1], sizeof where[1], "box against %s", name);
	snprintf(where[2], sizeof where[2], "command against %s", name);
	for (size_t i = 0; i < sizeof looks / sizeof *looks; i++) {
		struct child_end end;
		int reply = image_run(looks[i], pid, &end, NULL);
		say(reply == 'N' || (reply == 0 && end.signal), where[0], looks[i], "", reply == 'Y' ? "it worked" : end.words);
		child_end_free(&end);
		attack_one(where[1], CONFINE_CALLS_BOX, looks[i], pid);
		attack_one(where[2], CONFINE_CALLS_COMMAND, looks[i], pid);
	}
}

static void prepare(void)
{
	struct err e = {0};
	snprintf(me, sizeof me, "%d", (int)getpid());
	snprintf(secret, sizeof secret, "%s/secret", scratch);
	snprintf(planted, sizeof planted, "%s/planted", scratch);
	snprintf(verdict, sizeof verdict, "%s/verdict.json", scratch);
	snprintf(box_tmp, sizeof box_tmp, "%s/tmp", scratch);
	setenv("TS_SECRET", "key", 1);
	if (hash_file(hostile, sha, &e) || file_write(secret, "secret", 6, 0666, &e) || dir_make(box_tmp, &e))
		die_err(&e);
	chmod(secret, 0666); /* permissions are not what protects it here */
	chmod(scratch, 0777);
	chmod(box_tmp, 0777);
	unlink(planted);
	if (symlink(secret, planted))
		die(EX_SYS, "cannot plant a link in '%s'", scratch);
	/* an inheritable descriptor, as a careless library would leave it */
	int fd = open(secret, O_RDWR);
	if (fd < 0 || dup2(fd, 77) < 0)
		die(EX_SYS, "cannot open '%s'", secret);
}

int main(int argc, char **argv)
{
	prog_name(argv[0]);
	if (argc != 4 || argv[1][0] != '/' || argv[2][0] != '/' || argv[3][0] != '/')
		die(EX_BADUSE, "usage: attack HOSTILE SCRATCH DRIVER (absolute paths)");
	hostile = argv[1];
	scratch = argv[2];
	driver = argv[3];
	setvbuf(stdout, NULL, _IOLBF, 0);
	prepare();
	control_all();
	image_all();
	image_late_work();
	confined_all("box", CONFINE_CALLS_BOX);
	confined_all("command", CONFINE_CALLS_COMMAND);
	struct victims v;
	victims_start(&v);
	victim("checker", v.pid[VICTIM_CHECKER]);
	victim("client", v.pid[VICTIM_CLIENT]);
	worker_all(&v);
	victims_stop(&v);
	struct buf now = BUF_INIT;
	struct err e = {0};
	say(file_read(secret, 100, &now, &e) == 0 && now.len == 6, "after", "secret", NULL, "is untouched");
	say(access(verdict, F_OK) != 0, "after", "verdict", NULL, "was not written");
	buf_free(&now);
	printf("1..%d\n", tests);
	return failures != 0;
}
