/*
 * hostile.c - a program that tries to get out of its confinement, one way per run.
 *
 * usage: hostile ATTACK [ARGUMENT]. Says 'Y' (it worked) or 'N' (it was refused) on descriptor
 * 4 where that is open, else by exit code 0 or 1; may be killed instead. Static, like an image.
 * With -DDRIVER a CUDA driver that does it when it is started (the rest of it is the fake one's), in a
 * worker: what to do stands in the file `attack` beside it, and the exit code is 0 or 41.
 *
 * SPDX-License-Identifier: MIT
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static int opens(const char *path, int flags)
{
	char byte;
	int fd = open(path, flags, 0644);
	return fd >= 0 && (flags != O_RDONLY || read(fd, &byte, 1) == 1);
}

static int a_read(const char *path) { return opens(path, O_RDONLY); }
static int a_create(const char *path) { return opens(path, O_WRONLY | O_CREAT); }
static int a_append(const char *path) { return opens(path, O_WRONLY | O_APPEND); }
static int a_list(const char *path) { return open(path, O_RDONLY | O_DIRECTORY) >= 0; }
static int a_unlink(const char *path) { return unlink(path) == 0; }
static int a_link(const char *path) { return link("/proc/self/exe", path) == 0 || symlink("/etc/passwd", path) == 0; }

static int a_stat(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0;
}

static int proc_of(const char *pid, const char *what)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/%s/%s", pid, what);
	return opens(path, O_RDONLY);
}

static int a_environ(const char *pid) { return proc_of(pid, "environ"); }
static int a_maps(const char *pid) { return proc_of(pid, "maps"); }
static int a_mem(const char *pid)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/%s/mem", pid);
	return open(path, O_RDWR) >= 0;
}

static int a_vm_read(const char *pid)
{
	char here[8];
	struct iovec l = {here, 8}, r = {(void *)(uintptr_t)0x400000, 8};
	ssize_t n = process_vm_readv(atoi(pid), &l, 1, &r, 1, 0);
	return n > 0 || errno == EFAULT; /* a wrong address is a right of entry all the same */
}

static int a_ptrace(const char *pid) { return ptrace(PTRACE_ATTACH, atoi(pid), NULL, NULL) == 0; }
/* What it has open: the run's key, a socket, the memory of a workload. */
static int a_open_files(const char *pid)
{
	char path[64];
	for (int fd = 0; fd < 16; fd++) {
		snprintf(path, sizeof path, "/proc/%s/fd/%d", pid, fd);
		if (open(path, O_RDONLY | O_NONBLOCK) >= 0)
			return 1;
	}
	int pidfd = (int)syscall(SYS_pidfd_open, atoi(pid), 0);
	return pidfd >= 0 && syscall(SYS_pidfd_getfd, pidfd, 0, 0) >= 0;
}

static int a_signal(const char *pid) { return kill(atoi(pid), 0) == 0; }
static int a_traceme(const char *x) { (void)x; return ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0; }
static int a_inet(const char *x) { (void)x; return socket(AF_INET, SOCK_STREAM, 0) >= 0; }
static int a_unix(const char *x) { (void)x; return socket(AF_UNIX, SOCK_STREAM, 0) >= 0; }
/* To whatever serves this machine: any answer but "there is no such thing" is a way out. */
static int a_connect(const char *x)
{
	struct sockaddr_un where = {.sun_family = AF_UNIX, .sun_path = "/run/dbus/system_bus_socket"};
	(void)x;
	int s = socket(AF_UNIX, SOCK_STREAM, 0);
	return s >= 0 && (connect(s, (struct sockaddr *)&where, sizeof where) == 0 || errno == ECONNREFUSED);
}
static int a_netlink(const char *x) { (void)x; return socket(AF_NETLINK, SOCK_RAW, 0) >= 0; }

static int a_fork(const char *x)
{
	(void)x;
	pid_t pid = fork();
	if (pid == 0)
		_exit(0);
	return pid > 0;
}

static int a_thread(const char *x)
{
	(void)x;
	static char stack[4096];
	return syscall(SYS_clone, CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD,
		       stack + sizeof stack, 0, 0, 0) >= 0;
}

static int a_exec(const char *path)
{
	execl(path, path, (char *)NULL);
	return 0;
}

/* The descriptor that the launcher executed must be gone and not come back. */
static int a_exec_again(const char *x)
{
	(void)x;
	char *none[] = {NULL};
	dup2(0, 200);
	syscall(SYS_execveat, 200, "", none, none, AT_EMPTY_PATH);
	return errno != EBADF;
}

/* Every descriptor beyond those of the protocol is one too many. */
static int a_inherited(const char *x)
{
	struct stat st;
	int last = atoi(x);
	for (int fd = last + 1; fd < 4096; fd++)
		if (fstat(fd, &st) == 0)
			return 1;
	return 0;
}

/* A descriptor opened for reading must not become one for writing. */
static int a_reopen(const char *fd)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/self/fd/%s", fd);
	return open(path, O_RDWR) >= 0;
}

static int a_memory(const char *gib)
{
	size_t want = (size_t)atoi(gib) << 30, chunk = 64u << 20;
	for (size_t had = 0; had < want; had += chunk) {
		char *p = mmap(NULL, chunk, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (p == MAP_FAILED)
			return 0;
		for (size_t i = 0; i < chunk; i += 4096)
			p[i] = 1;
	}
	return 1;
}

static int a_shared_memory(const char *gib)
{
	size_t want = (size_t)atoi(gib) << 30;
	char *p = mmap(NULL, want, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return 0;
	for (size_t i = 0; i < want; i += 4096)
		p[i] = 1;
	sleep(5);
	return 1;
}

static int a_sysv(const char *x) { (void)x; return shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600) >= 0; }
static int a_memfd(const char *x) { (void)x; return memfd_create("x", 0) >= 0; }

static int a_disk(const char *path)
{
	static char chunk[1 << 20];
	int fd = open(path, O_WRONLY | O_CREAT, 0600);
	for (int i = 0; fd >= 0 && i < 1024; i++)
		if (write(fd, chunk, sizeof chunk) != (ssize_t)sizeof chunk)
			return 0;
	return fd >= 0;
}

static int a_write_exec(const char *dir)
{
	char path[4096], buf[65536];
	snprintf(path, sizeof path, "%s/copy", dir);
	int from = open("/usr/bin/env", O_RDONLY), to = open(path, O_WRONLY | O_CREAT, 0755);
	ssize_t n;
	if (from < 0 || to < 0)
		return 0;
	while ((n = read(from, buf, sizeof buf)) > 0)
		if (write(to, buf, (size_t)n) != n)
			return 0;
	close(to);
	execl(path, path, (char *)NULL);
	return 0;
}

static int a_code(const char *x)
{
	(void)x;
	return mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) !=
	       MAP_FAILED;
}

static int a_mount(const char *x) { (void)x; return mount("tmpfs", "/tmp", "tmpfs", 0, NULL) == 0; }
static int a_unshare(const char *x) { (void)x; return unshare(CLONE_NEWUSER) == 0; }
static int a_newuser(const char *x)
{
	(void)x;
	long pid = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);
	if (pid == 0)
		_exit(0);
	return pid > 0;
}
static int a_chroot(const char *x) { (void)x; return chroot("/tmp") == 0; }
static int a_setuid(const char *x) { (void)x; return setuid(0) == 0 && getuid() == 0; }
static int a_tty(const char *x) { (void)x; return ioctl(0, TIOCSTI, "x") == 0; }

/* By number: SYS_ names, whatever the arguments, are attempts. */
static int a_call(const char *number)
{
	return syscall(atol(number), 0, 0, 0, 0, 0, 0) >= 0;
}

/* Double fork, new session, and wait for the world to forget. */
static int a_daemon(const char *x)
{
	(void)x;
	pid_t pid = fork();
	if (pid < 0)
		return 0;
	if (pid > 0) {
		sleep(1);
		return 1;
	}
	setsid();
	if (fork() != 0)
		_exit(0);
	for (int i = 0; i < 300; i++)
		usleep(100000);
	_exit(0);
}

static int a_bomb(const char *x)
{
	for (int i = 0; i < atoi(x); i++) {
		pid_t pid = fork();
		if (pid < 0)
			return 0;
		if (pid == 0) {
			sleep(20);
			_exit(0);
		}
	}
	return 1;
}

static int a_flood(const char *x)
{
	static char line[4096];
	memset(line, 'x', sizeof line);
	for (int i = 0; i < atoi(x); i++)
		if (write(2, line, sizeof line) < 0)
			return 0;
	return 1;
}

static int a_spin(const char *x)
{
	(void)x;
	volatile uint64_t i = 0;
	while (++i)
		;
	return 1;
}

static int a_sleep(const char *x) { sleep((unsigned)atoi(x)); return 1; }
static int a_crash(const char *x) { (void)x; *(volatile int *)(uintptr_t)16 = 1; return 1; }
static int a_nothing(const char *x) { (void)x; return 0; }

static const struct {
	const char *name;
	int (*run)(const char *);
} attacks[] = {
	{"read", a_read}, {"create", a_create}, {"append", a_append}, {"list", a_list}, {"unlink", a_unlink},
	{"link", a_link}, {"stat", a_stat}, {"environ", a_environ}, {"maps", a_maps}, {"mem", a_mem},
	{"vm_read", a_vm_read}, {"open_files", a_open_files}, {"connect", a_connect}, {"ptrace", a_ptrace}, {"traceme", a_traceme}, {"signal", a_signal},
	{"inet", a_inet}, {"unix", a_unix}, {"netlink", a_netlink}, {"fork", a_fork}, {"thread", a_thread},
	{"exec", a_exec}, {"exec_again", a_exec_again}, {"inherited", a_inherited}, {"reopen", a_reopen},
	{"memory", a_memory}, {"shared_memory", a_shared_memory}, {"sysv", a_sysv}, {"memfd", a_memfd},
	{"disk", a_disk}, {"write_exec", a_write_exec}, {"code", a_code}, {"mount", a_mount},
	{"unshare", a_unshare}, {"newuser", a_newuser}, {"chroot", a_chroot}, {"setuid", a_setuid}, {"tty", a_tty},
	{"call", a_call}, {"daemon", a_daemon}, {"bomb", a_bomb}, {"flood", a_flood}, {"spin", a_spin},
	{"sleep", a_sleep}, {"crash", a_crash}, {"nothing", a_nothing},
};

static int attack(const char *name, const char *arg)
{
	for (size_t i = 0; i < sizeof attacks / sizeof *attacks; i++)
		if (strcmp(name, attacks[i].name) == 0)
			return attacks[i].run(arg);
	return -1;
}

#ifdef DRIVER

#include <dlfcn.h>

static char name[64], argument[4096];

/* While files can still be read. */
__attribute__((constructor)) static void learn(void)
{
	Dl_info here;
	char path[4096];
	if (!dladdr((void *)(uintptr_t)&attack, &here) || !here.dli_fname)
		return;
	snprintf(path, sizeof path, "%.*s/attack", (int)(strrchr(here.dli_fname, '/') - here.dli_fname), here.dli_fname);
	FILE *f = fopen(path, "re");
	if (f && fgets(name, sizeof name, f) && fgets(argument, sizeof argument, f)) {
		name[strcspn(name, "\n")] = '\0';
		argument[strcspn(argument, "\n")] = '\0';
	}
	if (f)
		fclose(f);
}

int cuInit(unsigned flags);
int cuInit(unsigned flags)
{
	(void)flags;
	_exit(attack(name, argument) == 0 ? 41 : 0);
}

#else

int main(int argc, char **argv)
{
	struct stat st;
	int worked = argc > 1 ? attack(argv[1], argc > 2 ? argv[2] : "") : -1;
	if (worked < 0)
		return 2;
	if (fstat(4, &st) == 0 && write(4, worked ? "Y" : "N", 1) != 1)
		return 3;
	return worked ? 0 : 1;
}

#endif
