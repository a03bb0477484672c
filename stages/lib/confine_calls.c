/*
 * confine_calls.c - which system calls a confined process keeps, by libseccomp. See confine.h.
 *
 * Kill or refuse: a call that no honest compiler or kernel image makes ends the process, so that
 * the attempt itself is seen (SIGSYS in the verdict). A call that a C library, loader or
 * sanitizer tries on its own and can do without is refused with the error it expects. Users'
 * commands are only ever refused: run times such as node probe io_uring and the like.
 *
 * IMAGE: listed calls stay, everything else kills. BOX: listed calls stay, the
 * dangerous ones kill, anything new or unusual gets ENOSYS. COMMAND: everything stays but the
 * dangerous ones. GPU: the same without new processes, programs, connections; refused and not killed,
 * since the user part of a driver is a large program that is not ours. ENGINE: GPU, and the one execve by which it starts,
 * which a filter cannot tell from a later one: what is executable in its view is its own program and the system's.
 *
 * SPDX-License-Identifier: MIT
 */
#include "confine_part.h"

#ifdef HAVE_SECCOMP

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <seccomp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define LIST(name) static const char *const name[]

/* What an image needs is for the emulator to say. Some of these have rules of their own below. */
LIST(image_calls) = {
#define EMU_CALL(name) #name,
#define EMU_CALL_X86(name) #name,
#include "../emu/syscalls.h"
#undef EMU_CALL
#undef EMU_CALL_X86
	/* abort() and a failed check inside the C library, so that they end as what they are */
	"writev", "futex", "getpid", "gettid", "exit",
};
LIST(image_ruled) = {"mmap", "mprotect", "prlimit64", "readlink", "readlinkat"};

/* Tried by one static C library or another at its start; it does without. */
LIST(image_refused) = {
	"open", "openat", "stat", "lstat", "access", "faccessat", "faccessat2", "readlink",
	"readlinkat", "getcwd", "uname", "sysinfo", "sched_getaffinity", "getuid", "geteuid", "getgid",
	"getegid", "prctl", "ioctl", "fcntl", "dup", "dup2", "dup3",
};

LIST(box_calls) = {
	"read", "write", "open", "openat", "close", "stat", "fstat", "lstat", "newfstatat", "statx",
	"statfs", "fstatfs", "lseek", "mmap", "mprotect", "munmap", "mremap", "brk", "madvise", "rt_sigaction",
	"rt_sigprocmask", "rt_sigreturn", "sigaltstack", "pread64", "pwrite64", "readv", "writev",
	"access", "faccessat", "faccessat2", "pipe", "pipe2", "dup", "dup2", "dup3", "fcntl", "getpid",
	"getppid", "gettid", "getpgrp", "getpgid", "vfork", "fork", "execve", "wait4", "waitid",
	"exit", "exit_group", "uname", "fsync", "fdatasync", "ftruncate", "truncate", "getcwd", "chdir", "fchdir", "rename",
	"renameat", "renameat2", "mkdir", "mkdirat", "rmdir", "unlink", "unlinkat", "link", "linkat",
	"symlink", "symlinkat", "readlink", "readlinkat", "chmod", "fchmod", "fchmodat", "umask",
	"getrlimit", "setrlimit", "prlimit64", "getrusage", "sysinfo", "times", "getuid", "geteuid",
	"getgid", "getegid", "getresuid", "getresgid", "getgroups", "arch_prctl", "set_tid_address",
	"set_robust_list", "rseq", "futex", "getrandom", "clock_gettime", "clock_getres",
	"clock_nanosleep", "nanosleep", "gettimeofday", "time", "poll", "ppoll", "select", "pselect6",
	"sched_yield", "sched_getaffinity", "getdents64", "fadvise64", "fallocate", "sendfile",
	"copy_file_range", "utimensat", "memfd_create", "kill", "tgkill", "close_range", "pidfd_open",
	"restart_syscall", "membarrier", "prctl", "msync", "flock",
};

/* Other processes, the kernel's own machinery, the network, the mount table. */
LIST(dangerous) = {
	"ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "process_mrelease",
	"pidfd_getfd", "kcmp", "bpf", "io_uring_setup", "io_uring_enter", "io_uring_register",
	"userfaultfd", "perf_event_open", "keyctl", "add_key", "request_key", "mount", "umount",
	"umount2", "pivot_root", "chroot", "open_tree", "move_mount", "fsopen", "fsconfig", "fsmount",
	"fspick", "mount_setattr", "unshare", "setns", "kexec_load", "kexec_file_load", "init_module",
	"finit_module", "delete_module", "swapon", "swapoff", "reboot", "iopl", "ioperm", "acct",
	"open_by_handle_at", "name_to_handle_at", "quotactl", "syslog", "settimeofday", "clock_settime",
	"clock_adjtime", "adjtimex", "sethostname", "setdomainname", "lookup_dcookie", "vhangup",
	"nfsservctl", "modify_ldt", "move_pages", "migrate_pages", "fanotify_init", "mknod", "mknodat",
};

/* The network is a policy of its own for commands; nobody else has any use for a socket. */
LIST(sockets) = {
	"socket", "socketpair", "connect", "bind", "listen", "accept", "accept4", "sendto", "recvfrom",
	"sendmsg", "recvmsg", "sendmmsg", "recvmmsg", "socketcall", "setsockopt", "getsockopt",
};
#define COUNT(list) (sizeof(list) / sizeof *(list))

/* A call this libseccomp or architecture does not know needs no rule: the default holds. */
static int add(scmp_filter_ctx f, uint32_t action, const char *name)
{
	int nr = seccomp_syscall_resolve_name(name);
	return nr == __NR_SCMP_ERROR ? 0 : seccomp_rule_add(f, action, nr, 0);
}

static int add_list(scmp_filter_ctx f, uint32_t action, const char *const *list, size_t n)
{
	int rc = 0;
	for (size_t i = 0; i < n && rc == 0; i++)
		rc = add(f, action, list[i]);
	return rc;
}

static int add_if(scmp_filter_ctx f, uint32_t action, const char *name, unsigned n,
		  const struct scmp_arg_cmp *args)
{
	int nr = seccomp_syscall_resolve_name(name);
	return nr == __NR_SCMP_ERROR ? 0 : seccomp_rule_add_array(f, action, nr, n, args);
}

#define ALLOW_IF(f, name, ...) \
	add_if(f, SCMP_ACT_ALLOW, name, \
	       sizeof((struct scmp_arg_cmp[]){__VA_ARGS__}) / sizeof(struct scmp_arg_cmp), \
	       (struct scmp_arg_cmp[]){__VA_ARGS__})

static int mask_off(scmp_filter_ctx f, const char *name, unsigned arg, uint64_t mask)
{
	struct scmp_arg_cmp a = {arg, SCMP_CMP_MASKED_EQ, mask, 0};
	return add_if(f, SCMP_ACT_ALLOW, name, 1, &a);
}

/* The launcher's own exec of the one sealed image. The descriptor is gone after it, and nothing
 * allowed here can make another with that number, so there is no second time. */
static int exec_rule(scmp_filter_ctx f, int fd)
{
	return ALLOW_IF(f, "execveat", SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)fd),
			SCMP_A4(SCMP_CMP_EQ, 0x1000 /* AT_EMPTY_PATH */));
}

static int listed(const char *name, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(name, list[i]) == 0)
			return 1;
	return 0;
}

static int image_rules(scmp_filter_ctx f, int exec_fd)
{
	scmp_datum_t self = (scmp_datum_t)getpid();
	int rc = add_list(f, SCMP_ACT_ERRNO(EACCES), image_refused, COUNT(image_refused));
	for (size_t i = 0; i < COUNT(image_calls); i++)
		if (!listed(image_calls[i], image_ruled, COUNT(image_ruled)))
			rc |= add(f, SCMP_ACT_ALLOW, image_calls[i]);
	/* glibc's fstat is newfstatat(fd, "", ..., AT_EMPTY_PATH) */
	struct scmp_arg_cmp empty = SCMP_A3(SCMP_CMP_EQ, 0x1000);
	struct scmp_arg_cmp named = SCMP_A3(SCMP_CMP_NE, 0x1000);
	rc |= add_if(f, SCMP_ACT_ALLOW, "newfstatat", 1, &empty);
	rc |= add_if(f, SCMP_ACT_ERRNO(EACCES), "newfstatat", 1, &named);
	/* A static image needs no new code. Shared memory of nobody's file would escape the limit
	 * on private memory. */
	static const uint32_t kinds[] = {MAP_ANONYMOUS, MAP_SHARED, 0};
	for (size_t i = 0; i < COUNT(kinds); i++)
		rc |= ALLOW_IF(f, "mmap", SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0),
			       SCMP_A3(SCMP_CMP_MASKED_EQ, MAP_ANONYMOUS | MAP_SHARED, kinds[i]));
	rc |= mask_off(f, "mprotect", 2, PROT_EXEC);
	rc |= exec_rule(f, exec_fd);
	/* abort() signals itself; any other process is out of reach */
	rc |= ALLOW_IF(f, "tgkill", SCMP_A0(SCMP_CMP_EQ, self));
	rc |= ALLOW_IF(f, "kill", SCMP_A0(SCMP_CMP_EQ, self));
	/* reading limits is fine, setting them is not */
	return rc | ALLOW_IF(f, "prlimit64", SCMP_A0(SCMP_CMP_EQ, 0), SCMP_A2(SCMP_CMP_EQ, 0));
}

/* Whoever leaves the group survives its kill. */
static int group_rules(scmp_filter_ctx f)
{
	return add(f, SCMP_ACT_ERRNO(EPERM), "setsid") | add(f, SCMP_ACT_ERRNO(EPERM), "setpgid");
}

static int box_rules(scmp_filter_ctx f)
{
	uint64_t spaces = CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID |
			  CLONE_NEWNET | CLONE_NEWCGROUP;
	return add_list(f, SCMP_ACT_ALLOW, box_calls, COUNT(box_calls)) |
	       /* Threads and processes, but no new namespaces. clone3 hides its flags in memory, where
		* no filter can look: the default ENOSYS makes every C library fall back to clone. */
	       mask_off(f, "clone", 0, spaces) |
	       add_list(f, SCMP_ACT_KILL_PROCESS, dangerous, COUNT(dangerous)) |
	       add_list(f, SCMP_ACT_KILL_PROCESS, sockets, COUNT(sockets)) |
	       /* compilers ask whether stderr is a terminal */
	       add(f, SCMP_ACT_ERRNO(ENOTTY), "ioctl") |
	       group_rules(f);
}

static int command_rules(scmp_filter_ctx f, int network, int caught)
{
	uint32_t no = SCMP_ACT_ERRNO(EPERM);
	uint64_t kinds[] = {CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC, CLONE_NEWUSER,
			    CLONE_NEWPID, CLONE_NEWNET, CLONE_NEWCGROUP};
	int rc = add_list(f, no, dangerous, COUNT(dangerous));
	for (size_t i = 0; i < COUNT(kinds); i++) {
		struct scmp_arg_cmp a = {0, SCMP_CMP_MASKED_EQ, kinds[i], kinds[i]};
		rc |= add_if(f, no, "clone", 1, &a);
	}
	rc |= add(f, SCMP_ACT_ERRNO(ENOSYS), "clone3"); /* as for the box */
	/* typing into the terminal we were started from */
	for (int i = 0; i < 2; i++) {
		struct scmp_arg_cmp a = {1, SCMP_CMP_MASKED_EQ, 0xffffffffu, i ? 0x541cu : TIOCSTI};
		rc |= add_if(f, no, "ioctl", 1, &a);
	}
	/* a process namespace dies whole, so there a command may make groups as it likes */
	if (!caught)
		rc |= group_rules(f);
	if (!network) {
		struct scmp_arg_cmp a = {0, SCMP_CMP_NE, AF_UNIX, 0};
		rc |= add_if(f, SCMP_ACT_ERRNO(EACCES), "socket", 1, &a);
	}
	return rc;
}

/* Beyond `dangerous`. Threads are the driver's own; it also makes one local socket and asks one of a
 * service that may not run here, hence ENOENT for connect. */
LIST(gpu_refused) = {
	"execveat", "fork", "vfork", "socketpair", "socketcall", "setuid", "setgid", "setreuid", "setregid", "setresuid", "setresgid",
	"setgroups", "setfsuid", "setfsgid", "capset", "personality", "pidfd_open", "pidfd_send_signal",
	"tkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "seccomp",
};

static int gpu_rules(scmp_filter_ctx f, int exec)
{
	uint32_t no = SCMP_ACT_ERRNO(EPERM);
	scmp_datum_t self = (scmp_datum_t)getpid();
	int rc = add_list(f, no, dangerous, COUNT(dangerous)) | add_list(f, no, gpu_refused, COUNT(gpu_refused));
	struct scmp_arg_cmp process = {0, SCMP_CMP_MASKED_EQ, CLONE_THREAD, 0};
	struct scmp_arg_cmp other = SCMP_A0(SCMP_CMP_NE, self);

	struct scmp_arg_cmp remote = {0, SCMP_CMP_NE, AF_UNIX, 0};

	rc |= exec ? 0 : add(f, no, "execve");
	rc |= add_if(f, no, "socket", 1, &remote) | add(f, SCMP_ACT_ERRNO(ENOENT), "connect");
	rc |= add_if(f, no, "clone", 1, &process);
	rc |= add(f, SCMP_ACT_ERRNO(ENOSYS), "clone3"); /* as for the box */
	rc |= add_if(f, no, "kill", 1, &other) | add_if(f, no, "tgkill", 1, &other);
	return rc | group_rules(f);
}

static int rules(scmp_filter_ctx f, const struct confine *c, unsigned got)
{
	switch (c->calls) {
	case CONFINE_CALLS_BOX:
		return box_rules(f);
	case CONFINE_CALLS_IMAGE:
		return image_rules(f, c->exec_fd);
	case CONFINE_CALLS_COMMAND:
		return command_rules(f, c->network, (got & CONFINE_NS_PID) != 0);
	case CONFINE_CALLS_GPU:
	case CONFINE_CALLS_ENGINE:
		return gpu_rules(f, c->calls == CONFINE_CALLS_ENGINE);
	case CONFINE_CALLS_NONE:
		break;
	}
	return 0;
}

/* The compiled filter travels through a memory file: libseccomp only writes to descriptors. */
static int export(scmp_filter_ctx f, struct confine_filter *out, struct err *e)
{
	int fd = memfd_create("filter", MFD_CLOEXEC);
	if (fd < 0)
		return err_sys(e, "cannot make a memory file");
	int rc = seccomp_export_bpf(f, fd);
	ssize_t n = rc == 0 ? pread(fd, out->code, sizeof out->code, 0) : -1;
	close(fd);
	if (n <= 0 || (size_t)n == sizeof out->code)
		return err_set(e, EX_SYS, "cannot export the system call filter");
	out->count = (unsigned short)((size_t)n / sizeof *out->code);
	return 1;
}

int confine_filter_possible(void)
{
	return prctl(PR_GET_SECCOMP, 0, 0, 0, 0) >= 0;
}

int confine_filter_make(const struct confine *c, unsigned got, struct confine_filter *out,
			struct err *e)
{
	uint32_t otherwise = SCMP_ACT_KILL_PROCESS;
	/* a kernel without it: the layer is absent, and libseccomp would call that an error */
	if (c->calls == CONFINE_CALLS_NONE || !confine_filter_possible())
		return 0;
	if (c->calls == CONFINE_CALLS_BOX)
		otherwise = SCMP_ACT_ERRNO(ENOSYS);
	if (c->calls == CONFINE_CALLS_COMMAND || c->calls == CONFINE_CALLS_GPU || c->calls == CONFINE_CALLS_ENGINE)
		otherwise = SCMP_ACT_ALLOW;
	scmp_filter_ctx f = seccomp_init(otherwise);
	if (!f)
		return err_set(e, EX_SYS, "cannot make a system call filter");
	/* other architectures' calls (x32, i386) kill; a balanced tree, since an image makes many */
	int rc = seccomp_attr_set(f, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
	seccomp_attr_set(f, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	if (rc == 0)
		rc = rules(f, c, got);
	rc = rc ? err_set(e, EX_HARNESS, "cannot build the system call filter") : export(f, out, e);
	seccomp_release(f);
	return rc;
}

#else

int confine_filter_possible(void)
{
	return 0;
}

int confine_filter_make(const struct confine *c, unsigned got, struct confine_filter *out,
			struct err *e)
{
	(void)c;
	(void)got;
	(void)out;
	(void)e;
	return 0;
}

#endif
