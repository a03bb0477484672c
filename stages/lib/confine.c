/*
 * confine.c - see confine.h. Namespaces, limits, uid and the order of the layers; the file view
 * is in confine_fs.c, the system calls in confine_calls.c.
 *
 * SPDX-License-Identifier: MIT
 */
#include "confine.h"

#include "confine_part.h"
#include "defence.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Inside a fresh user namespace getuid() is the overflow uid until the map is written, so the
 * real ones are remembered before the fork. */
static uid_t outer_uid;
static gid_t outer_gid;

static const struct {
	unsigned bit;
	int flag;
	const char *name, *layer;
} spaces[] = {
	{CONFINE_NS_MOUNT, CLONE_NEWNS, "mount", NULL}, /* reported once the view stands */
	{CONFINE_NS_NET, CLONE_NEWNET, "net", "netns"},
	{CONFINE_NS_IPC, CLONE_NEWIPC, "ipc", "ipcns"},
	{CONFINE_NS_PID, CLONE_NEWPID, "pid", "pidns"},
	{CONFINE_NS_USER, CLONE_NEWUSER, "user", "userns"},
};
#define SPACES (sizeof spaces / sizeof *spaces)

static pid_t clone_into(unsigned bits)
{
	unsigned long flags = SIGCHLD;
	for (size_t i = 0; i < SPACES; i++)
		if (bits & spaces[i].bit)
			flags |= (unsigned long)spaces[i].flag;
	/* the raw call: glibc's clone() wants a stack and a function; we want fork's meaning */
	return (pid_t)syscall(SYS_clone, flags, 0, 0, 0, 0);
}

pid_t confine_fork(unsigned wanted, unsigned *got)
{
	outer_uid = geteuid();
	outer_gid = getegid();
	wanted &= DEFENCE("confine.namespaces") ? CONFINE_NS_ALL : 0;
	if (wanted) {
		/* As root a user namespace would keep us root on the files we own, so root without
		 * CAP_SYS_ADMIN goes without and relies on the other uid. */
		*got = outer_uid == 0 ? wanted : wanted | CONFINE_NS_USER;
		pid_t pid = clone_into(*got);
		if (pid >= 0)
			return pid;
		if (outer_uid == 0) {
			/* a container often allows a private network or none at all */
			*got = wanted & ~(unsigned)CONFINE_NS_MOUNT;
			pid = *got ? clone_into(*got) : -1;
			if (pid >= 0)
				return pid;
		}
	}
	*got = 0;
	return fork();
}

static int put(const char *path, const char *text, struct err *e)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return err_sys(e, "cannot open '%s'", path);
	ssize_t n = write(fd, text, strlen(text));
	int saved = errno;
	close(fd);
	errno = saved;
	return n == (ssize_t)strlen(text) ? 0 : err_sys(e, "cannot write '%s'", path);
}

/* Exec takes the capabilities of a user namespace away from anyone but its root; ambient ones
 * stay, and a program that builds its own view needs these two. confine_apply drops them. */
static int caps_keep(struct err *e)
{
	static const int kept[] = {CAP_SYS_ADMIN, CAP_SYS_CHROOT};
	struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct data[2];
	if (syscall(SYS_capget, &head, data))
		return err_sys(e, "cannot read capabilities");
	for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
		data[0].inheritable |= 1u << kept[i];
	if (syscall(SYS_capset, &head, data))
		return err_sys(e, "cannot keep capabilities");
	for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
		if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, kept[i], 0, 0))
			return err_sys(e, "cannot keep capabilities");
	return 0;
}

int confine_enter(unsigned got, struct err *e)
{
	if (!(got & CONFINE_NS_USER))
		return 0;
	/* /proc/self belongs to root while we are not dumpable, and the map is written there. We
	 * are a copy of our parent until exec, so undo it at once. */
	int dumpable = prctl(PR_GET_DUMPABLE, 0, 0, 0, 0);
	char map[64];
	prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	int rc = put("/proc/self/setgroups", "deny", e);
	snprintf(map, sizeof map, "%u %u 1\n", outer_uid, outer_uid);
	if (rc == 0)
		rc = put("/proc/self/uid_map", map, e);
	snprintf(map, sizeof map, "%u %u 1\n", outer_gid, outer_gid);
	if (rc == 0)
		rc = put("/proc/self/gid_map", map, e);
	if (dumpable == 0)
		prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	return rc ? rc : caps_keep(e);
}

void confine_ns_names(unsigned got, char out[CONFINE_LIST])
{
	size_t n = 0;
	out[0] = '\0';
	for (size_t i = 0; i < SPACES; i++)
		if (got & spaces[i].bit)
			n += (size_t)snprintf(out + n, CONFINE_LIST - n, "%s%s", n ? "," : "", spaces[i].name);
}

unsigned confine_ns_parse(const char *names)
{
	unsigned got = 0;
	for (size_t i = 0; names && i < SPACES; i++)
		if (confine_has(names, spaces[i].name))
			got |= spaces[i].bit;
	return got;
}

/* --- layers --- */

static void layer_add(struct confine_report *r, const char *name)
{
	size_t n = strlen(r->layers);
	snprintf(r->layers + n, CONFINE_LIST - n, "%s%s", n ? "," : "", name);
}

static int limit_set(int which, uint64_t value, const char *name, struct err *e)
{
	struct rlimit old, now = {.rlim_cur = (rlim_t)value, .rlim_max = (rlim_t)value};
	if (getrlimit((__rlimit_resource_t)which, &old))
		return err_sys(e, "cannot read the limit '%s'", name);
	/* an unprivileged process cannot go above the limit it was given; the lower one holds */
	if (old.rlim_max != RLIM_INFINITY && now.rlim_max > old.rlim_max)
		now.rlim_cur = now.rlim_max = old.rlim_max;
	if (setrlimit((__rlimit_resource_t)which, &now))
		return err_sys(e, "cannot set the limit '%s'", name);
	return 0;
}

int confine_limits_apply(const struct confine_limits *l, struct err *e)
{
	const struct {
		int which;
		uint64_t value;
		const char *name;
	} all[] = {
		{RLIMIT_DATA, l->memory, "memory"},       {RLIMIT_AS, l->space, "space"},
		{RLIMIT_CPU, l->cpu_s, "cpu"},            {RLIMIT_FSIZE, l->file_bytes, "file"},
		{RLIMIT_NOFILE, l->files, "files"},       {RLIMIT_NPROC, l->processes, "processes"},
		{RLIMIT_STACK, l->stack, "stack"},
	};
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		if (all[i].value && limit_set(all[i].which, all[i].value, all[i].name, e))
			return -1;
	return limit_set(RLIMIT_CORE, 0, "core", e);
}

/* The kernel should end the untrusted process first when memory runs out, not the harness. */
static void oom_first(void)
{
	struct err ignored;
	put("/proc/self/oom_score_adj", "1000", &ignored);
}

/* The limit on processes counts everything of this uid, a whole desktop perhaps: as ourselves we
 * may add to what runs already, as a uid of our own the limit is the limit. */
static uint64_t tasks_now(void)
{
	uint64_t n = 0;
	DIR *d = opendir("/proc");
	for (struct dirent *x; d && (x = readdir(d));) {
		char path[300], line[256];
		struct stat st;
		unsigned long threads = 0;
		snprintf(path, sizeof path, "/proc/%s", x->d_name);
		if (x->d_name[0] < '1' || x->d_name[0] > '9' || stat(path, &st) || st.st_uid != geteuid())
			continue;
		snprintf(path, sizeof path, "/proc/%s/status", x->d_name);
		FILE *f = fopen(path, "re");
		while (f && fgets(line, sizeof line, f) && sscanf(line, "Threads: %lu", &threads) != 1)
			;
		if (f)
			fclose(f);
		n += threads;
	}
	if (d)
		closedir(d);
	return n;
}

/* 1 when we are another uid afterwards, 0 when we cannot (not root, no CAP_SETUID). */
static int uid_drop(const struct confine *c, uid_t uid, struct err *e)
{
	if (c->keep_uid || geteuid() != 0 || !DEFENCE("confine.uid"))
		return 0;
	if (setgroups(0, NULL) || setresgid(uid, uid, uid)) {
		if (errno == EPERM)
			return 0;
		return err_sys(e, "cannot change the group to %u", uid);
	}
	if (setresuid(uid, uid, uid)) {
		if (errno == EPERM)
			return 0;
		return err_sys(e, "cannot change the user to %u", uid);
	}
	return 1;
}

/* Root without a change of uid, or a user namespace, still holds capabilities. */
static int caps_drop(struct err *e)
{
	struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct none[2];
	if (!DEFENCE("confine.caps"))
		return 0;
	memset(none, 0, sizeof none);
	for (int cap = 0; cap <= 63; cap++)
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) && errno != EPERM)
			break; /* beyond the last one this kernel knows */
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) && errno != EINVAL)
		return err_sys(e, "cannot clear the ambient capabilities");
	if (syscall(SYS_capset, &head, none))
		return err_sys(e, "cannot drop capabilities");
	return 0;
}

/* Changing uid clears the parent death signal, so it is put back, and a parent that died in
 * between is noticed. */
static int creds_drop(const struct confine *c, uid_t uid, struct confine_report *r, struct err *e)
{
	int death = 0;
	pid_t parent = getppid();
	prctl(PR_GET_PDEATHSIG, &death, 0, 0, 0);
	int rc = uid_drop(c, uid, e);
	if (rc < 0 || caps_drop(e))
		return -1;
	if (rc)
		layer_add(r, "uid");
	layer_add(r, "nocaps");
	if (death) {
		prctl(PR_SET_PDEATHSIG, death, 0, 0, 0);
		if (getppid() != parent)
			return err_set(e, EX_SYS, "parent ended");
	}
	return 0;
}

static int files_drop(const struct confine *c, unsigned got, uid_t uid, struct confine_report *r,
		      struct err *e)
{
	int abi = 0, rc = DEFENCE("confine.view") ? confine_view(c, got, uid, e) : 0;
	if (rc < 0)
		return -1;
	if (rc) {
		layer_add(r, "mountns");
		r->view = 1;
	}
	rc = DEFENCE("confine.landlock") ? confine_landlock(c, r->view, &abi, e) : 0;
	if (rc > 0) {
		char name[32];
		snprintf(name, sizeof name, "landlock:%d", abi);
		layer_add(r, name);
	}
	return rc < 0 ? -1 : 0;
}

/* Set the limits and, last, the filter. It was made before: under the limits, or in a sanitizer
 * build, there may be no memory left to make it with. */
static int cage_close(const struct confine_limits *l, const struct confine_filter *filter,
		      struct confine_report *r, struct err *e)
{
	if (DEFENCE("confine.rlimits")) {
		if (confine_limits_apply(l, e))
			return -1;
		layer_add(r, "rlimits");
	}
	if (DEFENCE("confine.nodump") && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0)
		layer_add(r, "nodump");
	if (filter->count == 0 || !DEFENCE("confine.seccomp"))
		return 0;
	struct sock_fprog prog = {.len = filter->count, .filter = (struct sock_filter *)filter->code};
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog, 0, 0)) {
		if (prctl(PR_GET_SECCOMP, 0, 0, 0, 0) < 0)
			return 0; /* a kernel without it: the layer is absent */
		return err_sys(e, "cannot load the system call filter");
	}
	layer_add(r, "seccomp");
	return 0;
}

int confine_apply(const struct confine *c, unsigned got, struct confine_report *r, struct err *e)
{
	static struct confine_filter filter;
	uid_t uid = c->uid ? c->uid : CONFINE_UID;
	struct confine_limits limits = c->limits;
	memset(r, 0, sizeof *r);
	filter.count = 0;
	oom_first();
	if (limits.processes && (geteuid() != 0 || c->keep_uid))
		limits.processes += tasks_now();
	/* first: Landlock and an unprivileged seccomp both need it */
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return err_sys(e, "cannot set no_new_privs");
	layer_add(r, "no_new_privs");
	for (size_t i = 0; i < SPACES; i++)
		if ((got & spaces[i].bit) && spaces[i].layer)
			layer_add(r, spaces[i].layer);
	if (confine_filter_make(c, got, &filter, e) < 0)
		return -1;
	if ((!c->all_files && files_drop(c, got, geteuid() ? geteuid() : uid, r, e)) || creds_drop(c, uid, r, e))
		return -1;
	/* after the uid change, which an exceeded process limit would make fail */
	return cage_close(&limits, &filter, r, e);
}

/* --- lists --- */

/* The length of the item at `s`, up to a comma. */
static size_t item(const char *s)
{
	return strcspn(s, ",");
}

int confine_has(const char *layers, const char *name)
{
	size_t n = strlen(name);
	for (const char *s = layers; *s; s += item(s), s += *s == ',')
		if (strncmp(s, name, n) == 0 && (s[n] == '\0' || s[n] == ',' || s[n] == ':'))
			return 1;
	return 0;
}

int confine_minimum(const char *layers)
{
	return confine_has(layers, "no_new_privs") && confine_has(layers, "rlimits") &&
	       confine_has(layers, "seccomp") &&
	       (confine_has(layers, "landlock") || confine_has(layers, "mountns") ||
		confine_has(layers, "uid"));
}

void confine_offers(char out[CONFINE_LIST])
{
	int abi = confine_landlock_abi();
	snprintf(out, CONFINE_LIST, "%slandlock:%d%s", confine_filter_possible() ? "seccomp," : "", abi > 0 ? abi : 0,
		 geteuid() == 0 ? ",uid" : "");
}

void confine_common(const char *a, const char *b, char both[CONFINE_LIST])
{
	char kept[CONFINE_LIST] = "";
	size_t used = 0;
	for (const char *s = a; *s; s += item(s), s += *s == ',') {
		char name[CONFINE_LIST];
		snprintf(name, sizeof name, "%.*s", (int)item(s), s);
		if (confine_has(b, name))
			used += (size_t)snprintf(kept + used, sizeof kept - used, "%s%s", used ? "," : "", name);
		if (used >= sizeof kept)
			break;
	}
	memcpy(both, kept, sizeof kept);
}
