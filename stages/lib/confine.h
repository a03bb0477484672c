/*
 * confine.h - the one confinement: what a process may still do once it holds untrusted input.
 *
 * A policy is data. confine_apply() turns it into layers, strongest first to fail, in this
 * order: file view (mount namespace), Landlock, rlimits, other uid, no capabilities,
 * no_new_privs, dumpable 0, seccomp. A layer the machine lacks is left out and not reported; a
 * layer that the machine has but that refuses to hold is an error, since a half-applied policy
 * must never run anything. Nothing is undone: call it in a process that will exec or exit.
 *
 * Namespaces need a new process (a pid namespace begins with its first process), so they are
 * made by confine_fork(), which falls back step by step: as root without a user namespace, then
 * with one, then none. spawn.h does both; programs rarely call these two themselves.
 *
 * The caller is single-threaded. Every function follows err.h.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_CONFINE_H
#define TS_CONFINE_H

#include "err.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define CONFINE_LIST 160 /* room for the longest list of layers */
#define CONFINE_UID 65534u

/* Which system calls stay. Each set says in confine_calls.c why a call is killed or refused. */
enum confine_calls {
	CONFINE_CALLS_NONE,     /* no filter */
	CONFINE_CALLS_BOX,      /* a compiler and its sub-processes */
	CONFINE_CALLS_IMAGE,    /* a static emulated kernel: memory, pipes, one exec, exit */
	CONFINE_CALLS_COMMAND,  /* any user's command: all but what reaches other processes or the kernel */
	CONFINE_CALLS_GPU,      /* a process with a GPU context: threads, devices, an open socket */
	CONFINE_CALLS_ENGINE,   /* the same, to be started in it: it may become another program of its view, never make one */
};

enum confine_access {
	CONFINE_READ,    /* read files, list directories */
	CONFINE_EXEC,    /* the same and execute */
	CONFINE_WRITE,   /* read, write, make, remove */
	CONFINE_DEVICE,  /* read, write and ioctl of device files */
	CONFINE_PRIVATE, /* CONFINE_WRITE on a tmpfs of `bytes` over `as`; without a mount namespace on `path` */
};

struct confine_path {
	const char *path; /* outside; a missing path is skipped */
	const char *as;   /* where it appears inside a mount namespace; NULL: same name */
	enum confine_access access;
	uint64_t bytes;   /* CONFINE_PRIVATE: size of the tmpfs */
};

/* Zero leaves a limit as it is. Core dumps are always off. */
struct confine_limits {
	uint64_t memory;     /* bytes of private writable memory; reserved address space is free */
	uint64_t space;      /* bytes of address space */
	uint64_t cpu_s;      /* seconds of CPU time of one process */
	uint64_t file_bytes; /* largest file written, in bytes */
	uint64_t files;      /* open descriptors */
	uint64_t processes;  /* of this uid; beyond those that run already when the uid is not changed */
	uint64_t stack;      /* bytes */
};

enum confine_ns {
	CONFINE_NS_MOUNT = 1,
	CONFINE_NS_NET = 2,
	CONFINE_NS_IPC = 4,
	CONFINE_NS_PID = 8,
	CONFINE_NS_USER = 16, /* never asked for: reported when it was needed to get the others */
	CONFINE_NS_ALL = 15,
};

struct confine {
	enum confine_calls calls;
	const struct confine_path *paths; /* the whole file view; empty = nothing */
	size_t path_count;
	int all_files;          /* 1: no file view and no Landlock; the other layers must do */
	int network;            /* 1: leave the network reachable (then no CONFINE_NS_NET either) */
	int proc;               /* 1: its own /proc entry can be read (agents); 2: and written: a driver names
	                         * its threads there and does not start when it cannot */
	int keep_uid;           /* 1: stay root when root */
	uid_t uid;              /* as root: run as this uid and gid; 0 means CONFINE_UID */
	unsigned namespaces;    /* enum confine_ns wanted from confine_fork */
	struct confine_limits limits;
	int exec_fd;            /* IMAGE: the only descriptor that may be executed (> 0) */
};

/* What held. `view` 1: the process sees only `as` names of the paths; 0: real names. */
struct confine_report {
	char layers[CONFINE_LIST]; /* "no_new_privs,rlimits,seccomp,landlock:7,mountns,netns,uid" */
	int view;
};

/* fork into as many of `wanted` namespaces as the machine gives; *got says which. Returns as
 * fork does. In the child call confine_enter(got) before anything else. */
pid_t confine_fork(unsigned wanted, unsigned *got);
int confine_enter(unsigned got, struct err *e); /* child: map the uid of a user namespace */

int confine_apply(const struct confine *c, unsigned got, struct confine_report *r, struct err *e);
int confine_limits_apply(const struct confine_limits *l, struct err *e);

/* "mount,net,pid" <-> bits, for handing `got` to a program that confines itself (spawn.h sets
 * the environment variable TS_NAMESPACES to it). */
void confine_ns_names(unsigned got, char out[CONFINE_LIST]);
unsigned confine_ns_parse(const char *names);

/* design.md 3: 1 when the list has no_new_privs, rlimits, seccomp and one of landlock,
 * mountns, uid; 0 otherwise. */
int confine_minimum(const char *layers);
int confine_has(const char *layers, const char *name); /* "landlock" matches "landlock:7" */

/* What this kernel and user offer without trying it, "seccomp,landlock:7,uid": a result that was made with less
 * is not one of this machine (box_cache.c). Namespaces are not among them. */
void confine_offers(char out[CONFINE_LIST]);

/* Layers common to two lists, for a step that ran several processes. `both` may be `a`. */
void confine_common(const char *a, const char *b, char both[CONFINE_LIST]);

#endif
