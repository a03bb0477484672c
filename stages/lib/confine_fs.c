/*
 * confine_fs.c - the files a confined process can reach: a mount namespace that holds only the
 * listed paths, and Landlock over the same list. See confine.h.
 *
 * The two overlap on purpose. Landlock works for everybody but lets a process ask whether a
 * hidden file exists; the mount view has nothing to ask about but needs a namespace.
 *
 * SPDX-License-Identifier: MIT
 */
#include "confine_part.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Newer than some headers; the numbers are the same on every architecture. */
#ifndef SYS_open_tree
#define SYS_open_tree 428
#define SYS_move_mount 429
#endif
#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif
#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule 445
#define SYS_landlock_restrict_self 446
#endif

#define TREE_CLONE 1u
#define TREE_RECURSIVE 0x8000u /* AT_RECURSIVE */
#define FROM_EMPTY_PATH 4u     /* MOVE_MOUNT_F_EMPTY_PATH */

struct attr { /* struct mount_attr */
	uint64_t set, clear, propagation, userns_fd;
};
#define ATTR_RDONLY 1u
#define ATTR_NOSUID 2u
#define ATTR_NODEV 4u
#define ATTR_NOEXEC 8u

enum { PATHS_MAX = 64 };

/* --- mount view --- */

static const char *inside(const struct confine_path *p)
{
	return p->as ? p->as : p->path;
}

/* A detached, restricted copy of the tree at p->path; -2 when there is no such path. */
static int tree_take(const struct confine_path *p, struct err *e)
{
	struct stat st;
	int fd = (int)syscall(SYS_open_tree, AT_FDCWD, p->path, TREE_CLONE | TREE_RECURSIVE | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT || errno == ENOTDIR ? -2 : err_sys(e, "cannot clone '%s'", p->path);
	struct attr a = {.set = ATTR_NOSUID};
	if (p->access != CONFINE_DEVICE && fstat(fd, &st) == 0 && !S_ISCHR(st.st_mode))
		a.set |= ATTR_NODEV;
	if (p->access != CONFINE_EXEC)
		a.set |= ATTR_NOEXEC;
	if (p->access == CONFINE_READ || p->access == CONFINE_EXEC)
		a.set |= ATTR_RDONLY;
	if (syscall(SYS_mount_setattr, fd, "", (unsigned)AT_EMPTY_PATH | TREE_RECURSIVE, &a, sizeof a)) {
		err_sys(e, "cannot restrict '%s'", p->path);
		close(fd);
		return -1;
	}
	return fd;
}

/* Make every directory above `path` (absolute, below the new root, our cwd), then `path`. */
static int point_make(const char *path, int directory, struct err *e)
{
	char p[PATH_MAX];
	if (path[0] != '/' || strlen(path) >= sizeof p)
		return err_set(e, EX_HARNESS, "not an absolute path: '%s'", path);
	snprintf(p, sizeof p, "%s", path + 1);
	for (char *s = strchr(p, '/'); s; s = strchr(s + 1, '/')) {
		*s = '\0';
		if (mkdir(p, 0755) && errno != EEXIST)
			return err_sys(e, "cannot make '%s' in the view", p);
		*s = '/';
	}
	if (directory)
		return mkdir(p, 0755) && errno != EEXIST ? err_sys(e, "cannot make '%s' in the view", p) : 0;
	int fd = open(p, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
	if (fd < 0)
		return err_sys(e, "cannot make '%s' in the view", p);
	close(fd);
	return 0;
}

/* /lib -> usr/lib is a link on most systems; the program loader's name must stay valid. */
static int link_keep(const struct confine_path *p, struct err *e)
{
	char target[PATH_MAX];
	struct stat st;
	if (lstat(p->path, &st) || !S_ISLNK(st.st_mode))
		return 0;
	ssize_t n = readlink(p->path, target, sizeof target - 1);
	if (n < 0)
		return err_sys(e, "cannot read the link '%s'", p->path);
	target[n] = '\0';
	char rel[PATH_MAX];
	snprintf(rel, sizeof rel, "%s", inside(p) + 1);
	return symlink(target, rel) ? err_sys(e, "cannot link '%s' in the view", rel) : 1;
}

static int private_mount(const struct confine_path *p, uid_t uid, struct err *e)
{
	char data[128];
	snprintf(data, sizeof data, "size=%llu,nr_inodes=8192,mode=0700,uid=%u,gid=%u",
		 (unsigned long long)p->bytes, uid, uid);
	if (point_make(inside(p), 1, e))
		return -1;
	if (mount("tmpfs", inside(p) + 1, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, data))
		return err_sys(e, "cannot mount '%s' in the view", inside(p));
	return 0;
}

static int proc_mount(unsigned got, struct err *e)
{
	if (point_make("/proc", 1, e))
		return -1;
	if ((got & CONFINE_NS_PID) &&
	    mount("proc", "proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) == 0)
		return 0;
	/* A container that masks parts of /proc forbids a new one: the old one is put there by the
	 * caller, and Landlock leaves only our own entry readable. */
	return 1;
}

static int place(const struct confine_path *p, int tree, struct err *e)
{
	struct stat st;
	if (fstat(tree, &st))
		return err_sys(e, "cannot inspect '%s'", p->path);
	if (point_make(inside(p), S_ISDIR(st.st_mode), e))
		return -1;
	if (syscall(SYS_move_mount, tree, "", AT_FDCWD, inside(p) + 1, FROM_EMPTY_PATH))
		return err_sys(e, "cannot place '%s' in the view", inside(p));
	return 0;
}

static int root_swap(struct err *e)
{
	if (syscall(SYS_pivot_root, ".", ".") == 0) {
		if (umount2(".", MNT_DETACH))
			return err_sys(e, "cannot leave the old root");
	} else if (mount(".", "/", NULL, MS_MOVE, NULL) || chroot(".")) {
		return err_sys(e, "cannot enter the new root"); /* an initramfs cannot pivot */
	}
	struct attr ro = {.set = ATTR_RDONLY | ATTR_NOSUID | ATTR_NODEV};
	if (chdir("/") || syscall(SYS_mount_setattr, AT_FDCWD, "/", 0, &ro, sizeof ro))
		return err_sys(e, "cannot seal the new root");
	return 0;
}

static int view_fill(const struct confine *c, unsigned got, uid_t uid, const int *trees, int proc,
		     struct err *e)
{
	for (size_t i = 0; i < c->path_count; i++) {
		const struct confine_path *p = &c->paths[i];
		int linked = trees[i] >= 0 && trees[i] == INT_MAX;
		if (p->access == CONFINE_PRIVATE) {
			if (private_mount(p, uid, e))
				return -1;
		} else if (!linked && trees[i] >= 0 && place(p, trees[i], e)) {
			return -1;
		}
	}
	if (!c->proc)
		return 0;
	int rc = proc_mount(got, e);
	if (rc > 0 && proc >= 0 && syscall(SYS_move_mount, proc, "", AT_FDCWD, "proc", FROM_EMPTY_PATH))
		return err_sys(e, "cannot place '/proc' in the view");
	return rc < 0 ? -1 : 0;
}

/* Links are copied before anything is mounted over the names they are read from. */
static int links_fill(const struct confine *c, int *trees, struct err *e)
{
	for (size_t i = 0; i < c->path_count; i++) {
		int rc = c->paths[i].access == CONFINE_PRIVATE ? 0 : link_keep(&c->paths[i], e);
		if (rc < 0)
			return -1;
		if (rc) {
			if (trees[i] >= 0)
				close(trees[i]);
			trees[i] = INT_MAX;
		}
	}
	return 0;
}

static int trees_take(const struct confine *c, int *trees, struct err *e)
{
	for (size_t i = 0; i < c->path_count; i++) {
		trees[i] = -2;
		if (c->paths[i].access != CONFINE_PRIVATE)
			trees[i] = tree_take(&c->paths[i], e);
		if (trees[i] == -1)
			return -1;
	}
	return 0;
}

int confine_view(const struct confine *c, unsigned got, uid_t uid, struct err *e)
{
	int trees[PATHS_MAX];
	if (!(got & CONFINE_NS_MOUNT))
		return 0;
	if (c->path_count > PATHS_MAX)
		return err_set(e, EX_HARNESS, "too many paths in a confinement");
	/* Some kernels give an unprivileged process a user namespace but no right to mount in it,
	 * older ones lack these calls: the layer is absent then, nothing has changed yet. */
	struct attr none = {0};
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    syscall(SYS_mount_setattr, AT_FDCWD, "/", 0, &none, sizeof none))
		return 0;
	if (trees_take(c, trees, e))
		return -1;
	struct confine_path old_proc = {.path = "/proc", .access = c->proc > 1 ? CONFINE_WRITE : CONFINE_READ};
	int proc = c->proc ? tree_take(&old_proc, e) : -1;
	/* The new root needs a place to stand; /usr exists wherever a compiler does. Covering it
	 * hurts nobody: the copies above are already taken; a link below it was followed. */
	const char *base = access("/tmp", F_OK) == 0 ? "/tmp" : "/usr";
	if (mount("tmpfs", base, "tmpfs", MS_NOSUID | MS_NODEV, "size=1m,nr_inodes=1024,mode=0755") ||
	    chdir(base))
		return err_sys(e, "cannot mount a new root");
	if (links_fill(c, trees, e) || view_fill(c, got, uid, trees, proc, e) || root_swap(e))
		return -1;
	for (size_t i = 0; i < c->path_count; i++)
		if (trees[i] >= 0 && trees[i] != INT_MAX)
			close(trees[i]);
	if (proc >= 0)
		close(proc);
	return 1;
}

/* --- Landlock --- */

/* File rights by the ABI version that brought them. */
enum {
	FS_EXECUTE = 1, FS_WRITE = 1 << 1, FS_READ = 1 << 2, FS_READ_DIR = 1 << 3,
	FS_REMOVE_DIR = 1 << 4, FS_REMOVE_FILE = 1 << 5, FS_MAKE_CHAR = 1 << 6, FS_MAKE_DIR = 1 << 7,
	FS_MAKE_REG = 1 << 8, FS_MAKE_SOCK = 1 << 9, FS_MAKE_FIFO = 1 << 10, FS_MAKE_BLOCK = 1 << 11,
	FS_MAKE_SYM = 1 << 12, FS_REFER = 1 << 13 /* 2 */, FS_TRUNCATE = 1 << 14 /* 3 */,
	FS_IOCTL_DEV = 1 << 15, /* 5 */
};
#define FS_ABI1 0x1fffu
#define NET_ALL 3u   /* bind_tcp, connect_tcp: ABI 4 */
#define SCOPE_ALL 3u /* abstract unix sockets, signals: ABI 6 */
#define FS_ON_FILE (FS_EXECUTE | FS_WRITE | FS_READ | FS_TRUNCATE | FS_IOCTL_DEV)

struct ruleset { /* struct landlock_ruleset_attr, newest form known here */
	uint64_t fs, net, scoped;
};

struct rule { /* struct landlock_path_beneath_attr */
	uint64_t allowed;
	int32_t fd;
} __attribute__((packed));

static uint64_t rights(enum confine_access access)
{
	uint64_t read = FS_READ | FS_READ_DIR;
	switch (access) {
	case CONFINE_READ:
		return read;
	case CONFINE_EXEC:
		return read | FS_EXECUTE;
	case CONFINE_DEVICE:
		return read | FS_WRITE | FS_IOCTL_DEV;
	case CONFINE_WRITE:
	case CONFINE_PRIVATE:
		/* never executed; no devices, sockets, fifos */
		return read | FS_WRITE | FS_REMOVE_DIR | FS_REMOVE_FILE | FS_MAKE_DIR | FS_MAKE_REG |
		       FS_MAKE_SYM | FS_REFER | FS_TRUNCATE;
	}
	return 0;
}

static int rule_add(int set, const char *path, uint64_t allowed, uint64_t handled, struct err *e)
{
	struct stat st;
	int fd = open(path, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT || errno == ENOTDIR || errno == EACCES
			       ? 0 : err_sys(e, "cannot open '%s'", path);
	if (fstat(fd, &st) == 0 && !S_ISDIR(st.st_mode))
		allowed &= FS_ON_FILE;
	struct rule r = {.allowed = allowed & handled, .fd = fd};
	int rc = (int)syscall(SYS_landlock_add_rule, set, 1, &r, 0);
	if (rc)
		err_sys(e, "cannot add a landlock rule for '%s'", path);
	close(fd);
	return rc ? -1 : 0;
}

static int rules_fill(int set, const struct confine *c, int view, uint64_t handled, struct err *e)
{
	for (size_t i = 0; i < c->path_count; i++) {
		const struct confine_path *p = &c->paths[i];
		if (rule_add(set, view ? inside(p) : p->path, rights(p->access), handled, e))
			return -1;
	}
	if (!c->proc)
		return 0;
	/* A driver names its threads by fopen(".../comm", "w"), which truncates.
	 * In a process namespace of its own, whose first process it is, there is nobody else to see;
	 * an older /proc shows strangers. */
	char self[16] = "";
	int own = view && readlink("/proc/self", self, sizeof self - 1) == 1 && self[0] == '1';
	const char *proc = own ? "/proc" : "/proc/self";
	return rule_add(set, proc, rights(CONFINE_READ) | (c->proc > 1 ? (uint64_t)(FS_WRITE | FS_TRUNCATE) : 0), handled, e);
}

int confine_landlock_abi(void)
{
	return (int)syscall(SYS_landlock_create_ruleset, NULL, 0, 1u);
}

int confine_landlock(const struct confine *c, int view, int *abi, struct err *e)
{
	*abi = confine_landlock_abi();
	if (*abi < 1)
		return 0; /* not built in, or switched off at boot */
	/* ask for every right this kernel knows, so that what is not listed is refused */
	struct ruleset want = {.fs = FS_ABI1};
	size_t size = sizeof want.fs;
	if (*abi >= 2)
		want.fs |= FS_REFER;
	if (*abi >= 3)
		want.fs |= FS_TRUNCATE;
	if (*abi >= 5)
		want.fs |= FS_IOCTL_DEV;
	if (*abi >= 4) {
		want.net = c->network ? 0 : NET_ALL;
		size = sizeof want.fs + sizeof want.net;
	}
	if (*abi >= 6) {
		want.scoped = SCOPE_ALL;
		size = sizeof want;
	}
	int set = (int)syscall(SYS_landlock_create_ruleset, &want, size, 0);
	if (set < 0)
		return err_sys(e, "cannot make a landlock ruleset");
	int rc = rules_fill(set, c, view, want.fs, e);
	if (rc == 0 && syscall(SYS_landlock_restrict_self, set, 0))
		rc = err_sys(e, "cannot enter the landlock domain");
	close(set);
	return rc ? -1 : 1;
}
