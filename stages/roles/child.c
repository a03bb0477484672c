/*
 * child - confine this process, then become an emulated kernel image.
 *
 * Reads its image from descriptor 200 (a sealed copy of what the caller hashed), never from a
 * path. Says on descriptor 201 which layers of isolation hold, or why it could not start. Never
 * runs anything unconfined, and never sees keys or references: it is started with descriptors
 * 3 to 7 of stages/emu/protocol.h and nothing else.
 *
 * SPDX-License-Identifier: MIT
 */
#include "child_call.h"

#include "defence.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char usage[] =
	"usage: child fast|sanitize CPU MEMORY CPU_SECONDS [ARG]...\n"
	"\n"
	"Confine this process and execute the image open as descriptor 200 with arguments ARG.\n"
	"Started by judge, bench, unittest and checker; of no use by hand.\n"
	"  fast       an image for judging and timing\n"
	"  sanitize   an image with shadow memory: no limit on reserved memory\n"
	"  CPU        pin to this processor; -1: no\n"
	"  MEMORY     bytes of private memory (fast only)\n"
	"Exit: does not return; 2 usage, 111 a system call failed.\n";

/* The report is one line; losing its reader means that our parent is gone. */
static void report(const char *line)
{
	size_t n = strlen(line);
	if (write(CHILD_FD_REPORT, line, n) != (ssize_t)n)
		_exit(EX_SYS);
}

static _Noreturn void give_up(const struct err *e)
{
	char line[sizeof e->text + 32];
	snprintf(line, sizeof line, "err %d %s\n", e->code, e->text);
	report(line);
	_exit(e->code ? e->code : EX_HARNESS);
}

static void pin(int cpu)
{
	cpu_set_t set;
	struct err e;
	if (cpu < 0)
		return;
	CPU_ZERO(&set);
	CPU_SET((unsigned)cpu, &set);
	if (sched_setaffinity(0, sizeof set, &set)) {
		err_sys(&e, "cannot run on processor %d", cpu);
		give_up(&e);
	}
}

int main(int argc, char **argv)
{
	prog_name("child");
	if (argc == 2 && strcmp(argv[1], "-h") == 0) {
		fputs(usage, stdout);
		return 0;
	}
	int sanitize = argc > 1 && strcmp(argv[1], "sanitize") == 0;
	if (argc < 5 || (!sanitize && strcmp(argv[1], "fast") != 0)) {
		fputs(usage, stderr);
		return EX_BADUSE;
	}
	struct confine c = {
		.calls = CONFINE_CALLS_IMAGE,
		.exec_fd = CHILD_FD_IMAGE,
		.limits = {.files = CHILD_FILES,
			   /* shadow memory is reserved far beyond any machine: watched from outside */
			   .memory = sanitize ? 0 : strtoull(argv[3], NULL, 10),
			   .cpu_s = strtoull(argv[4], NULL, 10)},
	};
	struct confine_report r;
	struct err e = {0};
	pin(atoi(argv[2]));
	fcntl(CHILD_FD_IMAGE, F_SETFD, FD_CLOEXEC);
	fcntl(CHILD_FD_REPORT, F_SETFD, FD_CLOEXEC);
	if (confine_apply(&c, confine_ns_parse(getenv("TS_NAMESPACES")), &r, &e))
		give_up(&e);
	char line[CONFINE_LIST + 8];
	snprintf(line, sizeof line, "ok %s\n", r.layers);
	report(line);
	argv[4] = (char *)(uintptr_t)"image";
	char *none[] = {NULL};
	syscall(SYS_execveat, CHILD_FD_IMAGE, "", argv + 4, DEFENCE("child.env") ? none : environ, AT_EMPTY_PATH);
	err_sys(&e, "cannot start the image");
	give_up(&e);
}
