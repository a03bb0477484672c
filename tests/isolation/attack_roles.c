/*
 * attack_roles.c - attacks on and from the roles themselves: a worker whose driver is hostile, a checker
 * and a client that others would like to look into.
 *
 * SPDX-License-Identifier: MIT
 */
#include "attack.h"

#include "file.h"
#include "hash.h"
#include "worker_cage.h"
#include "worker_wire.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define KEY "sk-isolation-0123456789abcdef"

enum { REFUSED = 41 }; /* of hostile.c as a driver */

static void must(int rc, const struct err *e)
{
	if (rc)
		die_err(e);
}

/* --- victims --- */

static void checker_victim(struct victims *v)
{
	char tool[PATH_MAX], spec[PATH_MAX];
	struct err e = {0};
	must(spawn_tool("checker", tool, sizeof tool, &e), &e);
	snprintf(spec, sizeof spec, "%.4000s/../specs/vector_add", driver);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, v->pair))
		die(EX_SYS, "no socket pair");
	const char *argv[] = {tool, "--trial", "0001", "--stage", "judge", "--spec", spec, NULL};
	struct spawn_fd fds[] = {{v->pair[1], 3}};
	const struct spawn_request q = {.argv = argv, .fds = fds, .fd_count = 1, .err = SPAWN_KEEP};
	must(spawn_start(&q, &v->proc[VICTIM_CHECKER], &e), &e);
}

static int listener(int *port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t n = sizeof a;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&a, n) || listen(fd, 1) || getsockname(fd, (struct sockaddr *)&a, &n))
		die(EX_SYS, "cannot listen");
	*port = ntohs(a.sin_port);
	return fd;
}

static void client_victim(struct victims *v)
{
	char tool[PATH_MAX], path[PATH_MAX], sha[HASH_HEX];
	struct err e = {0};
	int port;
	must(spawn_tool("client", tool, sizeof tool, &e), &e);
	v->listening = listener(&port);
	snprintf(path, sizeof path, "%.4000s/request.body", scratch);
	must(file_write(path, "{}", 2, 0600, &e), &e);
	hash_hex("{}", 2, sha);
	char *text = xasprintf("{\"schema\":\"touchstone/request/1\",\"identity\":\"x\",\"kind\":\"chat\",\"method\":\"POST\","
			       "\"base_url\":\"http://127.0.0.1:%d/v1\",\"path\":\"chat/completions\",\"headers\":[],"
			       "\"auth\":{\"header\":\"Authorization\",\"scheme\":\"Bearer\",\"env\":\"TEST_KEY\",\"file\":null,"
			       "\"required\":true},\"body\":\"request.body\",\"body_sha256\":\"%s\",\"limits\":{\"total_ms\":300000}}",
			       port, sha);
	snprintf(path, sizeof path, "%.4000s/request.json", scratch);
	must(file_write(path, text, strlen(text), 0600, &e), &e);
	free(text);
	const char *argv[] = {tool, path, NULL};
	const char *env[] = {"PATH=" SPAWN_PATH, "TEST_KEY=" KEY, NULL};
	const struct spawn_request q = {.argv = argv, .env = env, .err = SPAWN_KEEP};
	must(spawn_start(&q, &v->proc[VICTIM_CLIENT], &e), &e);
	struct pollfd f = {.fd = v->listening, .events = POLLIN};
	say(poll(&f, 1, 20000) == 1, "client", "nothing", NULL, "it has its key and waits");
}

static int powerful(void)
{
	struct buf b = BUF_INIT;
	struct err e = {0};
	must(file_read("/proc/self/status", 1 << 16, &b, &e), &e);
	const char *caps = strstr(buf_str(&b), "CapEff:");
	int any = !caps || strtoull(caps + 7, NULL, 16) != 0;
	buf_free(&b);
	return any;
}

/* Can a program of the same user, not confined, look inside? Root can look into everything. */
static void looked_into(const char *name, const char *pid)
{
	static const char *const looks[] = {"environ", "mem", "vm_read", "ptrace", "open_files"};
	for (size_t i = 0; !powerful() && i < sizeof looks / sizeof *looks; i++) {
		struct spawn_result r;
		struct err e = {0};
		const struct spawn_request q = {.argv = (const char *const[]){hostile, looks[i], pid, NULL}, .wall_s = 20};
		must(spawn_run(&q, &r, &e), &e);
		say(r.code == 1, name, looks[i], "by the same user", r.code ? "refused" : "it worked");
		spawn_result_free(&r);
	}
}

void victims_start(struct victims *v)
{
	memset(v, 0, sizeof *v);
	checker_victim(v);
	client_victim(v);
	for (int i = 0; i < VICTIMS; i++)
		snprintf(v->pid[i], sizeof v->pid[i], "%d", (int)v->proc[i].pid);
	looked_into("checker", v->pid[VICTIM_CHECKER]);
	looked_into("client", v->pid[VICTIM_CLIENT]);
}

void victims_stop(struct victims *v)
{
	for (int i = 0; i < VICTIMS; i++) {
		struct spawn_result r;
		struct err e = {0};
		say(kill(v->proc[i].pid, 0) == 0, i ? "client" : "checker", "all of these", NULL, "is still there");
		spawn_kill(&v->proc[i]);
		if (spawn_wait(&v->proc[i], -1, &r, &e) == 0)
			spawn_result_free(&r);
	}
	close(v->pair[0]);
	close(v->pair[1]);
	close(v->listening);
}

/* --- a worker --- */

/* As worker_start() does it. -1: its cage cannot be had here; else the exit code, 0 for an attack that worked. */
static int driver_run(int cage, const char *attack, const char *arg, char words[320])
{
	char tool[PATH_MAX], path[PATH_MAX], number[8];
	struct err e = {0};
	struct spawn_result r;
	int pair[2];

	must(spawn_tool("worker", tool, sizeof tool, &e), &e);
	snprintf(path, sizeof path, "%.4000s/attack", driver);
	char *text = xasprintf("%s\n%s\n", attack, arg ? arg : "");
	must(file_write(path, text, strlen(text), 0644, &e), &e);
	free(text);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		die(EX_SYS, "no socket pair");
	snprintf(number, sizeof number, "%d", cage);
	char *where = xasprintf("LD_LIBRARY_PATH=%s", driver);
	const char *argv[] = {tool, number, NULL};
	const char *env[] = {"PATH=" SPAWN_PATH, "LC_ALL=C", "CUDA_VISIBLE_DEVICES=", where, NULL};
	struct spawn_fd fds[] = {{pair[1], 3}};
	const struct spawn_request q = {.argv = argv, .env = env, .cwd = "/", .fds = fds, .fd_count = 1,
					.err = SPAWN_CAPTURE, .err_cap = 1000, .wall_s = 5,
					.namespaces = worker_cage_namespaces(cage)};
	must(spawn_run(&q, &r, &e), &e);
	free(where);
	static struct worker_reply reply; /* said when it does not start */
	memset(&reply, 0, sizeof reply);
	if (recv(pair[0], &reply, sizeof reply, MSG_DONTWAIT) <= 0)
		spawn_words(&r, reply.text);
	snprintf(words, 320, "%.300s", reply.text);
	close(pair[0]);
	close(pair[1]);
	int code = r.code;
	spawn_result_free(&r);
	return code == EX_NOENV && strstr(words, "cannot confine itself") ? -1 : code;
}

static void worker_attack(int cage, const char *attack, const char *arg)
{
	char where[32], words[320];
	snprintf(where, sizeof where, "worker in cage %d", cage);
	int code = driver_run(cage, attack, arg, words);
	say(code == REFUSED, where, attack, arg, code == REFUSED ? "refused" : code == 0 ? "it worked" : words);
}

static void worker_files(int cage)
{
	char disk[PATH_MAX];
	snprintf(disk, sizeof disk, "%.4000s/disk", scratch);
	const char *reads[][2] = {{"read", secret}, {"read", planted}, {"list", scratch}, {"read", "/etc/passwd"}};
	const char *writes[][2] = {{"create", verdict}, {"append", secret}, {"unlink", secret}, {"link", verdict},
				   {"disk", disk}, {"create", "/tmp/x"}, {"write_exec", scratch}};
	for (size_t i = 0; cage < WORKER_CAGE_DEVICES && i < sizeof reads / sizeof *reads; i++)
		worker_attack(cage, reads[i][0], reads[i][1]);
	for (size_t i = 0; cage < WORKER_CAGE_PLAIN && i < sizeof writes / sizeof *writes; i++)
		worker_attack(cage, writes[i][0], writes[i][1]);
}

static void worker_cage_attacks(int cage, const struct victims *v)
{
	const char *table[][2] = {
		{"exec", "/bin/sh"}, {"exec", "/proc/self/exe"}, {"fork", NULL}, {"bomb", "100"}, {"daemon", NULL},
		{"inet", NULL}, {"netlink", NULL}, {"inherited", "3"}, {"traceme", NULL}, {"signal", "-1"},
		{"mount", NULL}, {"unshare", NULL}, {"newuser", NULL}, {"chroot", NULL}, {"setuid", NULL}, {"tty", NULL},
		{"connect", NULL}, {"environ", "1"},
	};
	static const char *const looks[] = {"environ", "maps", "mem", "vm_read", "ptrace", "signal", "open_files"};
	const char *pids[] = {me, v->pid[VICTIM_CHECKER], v->pid[VICTIM_CLIENT]};
	for (size_t i = 0; i < sizeof table / sizeof *table; i++)
		worker_attack(cage, table[i][0], table[i][1]);
	for (size_t i = 0; i < sizeof pids / sizeof *pids; i++)
		for (size_t k = 0; k < sizeof looks / sizeof *looks; k++)
			worker_attack(cage, looks[k], pids[i]);
	worker_files(cage);
}

void worker_all(const struct victims *v)
{
	prctl(PR_SET_DUMPABLE, 0); /* as the stages are that start workers (stage.c) */
	for (int cage = 0; cage < WORKER_CAGES; cage++) {
		char words[320], where[32];
		snprintf(where, sizeof where, "worker in cage %d", cage);
		int code = driver_run(cage, "nothing", NULL, words);
		/* a mount namespace that cannot be had here: no such cage on this machine */
		if (code < 0) {
			printf("# %s: none here: %s\n", where, words);
			continue;
		}
		printf("# %s runs its driver\n", where);
		/* it can work at all: what its driver may do works */
		say(driver_run(cage, "memfd", NULL, words) == 0, where, "memfd", NULL, "works, as it must");
		worker_cage_attacks(cage, v);
	}
	say(left_over_soon() == 0, "worker", "survivors", NULL, "none is left");
}
