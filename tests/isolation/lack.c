/*
 * lack.c - run a command as if this kernel lacked a layer of isolation, for it and all it starts.
 *
 * usage: lack LAYER[,LAYER...] COMMAND [ARG]...
 * LAYER is landlock, namespaces, mounts, uid, seccomp or no_new_privs. The calls that make such a layer fail as
 * they do where it is not built in or not allowed: a filter that root loads without no_new_privs. Test only.
 *
 * SPDX-License-Identifier: MIT
 */
#include <errno.h>
#include <sched.h>
#include <seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static scmp_filter_ctx filter;
static int bad;

static void fail(const char *call, int code)
{
	int nr = seccomp_syscall_resolve_name(call);
	bad |= nr == __NR_SCMP_ERROR || seccomp_rule_add(filter, SCMP_ACT_ERRNO((unsigned)code), nr, 0);
}

static void fail_if(const char *call, int code, struct scmp_arg_cmp arg)
{
	bad |= seccomp_rule_add_array(filter, SCMP_ACT_ERRNO((unsigned)code), seccomp_syscall_resolve_name(call), 1, &arg);
}

static void lack(const char *layer)
{
	static const char *const mounts[] = {"mount", "umount2", "pivot_root", "move_mount", "mount_setattr", "fsopen"};
	static const char *const uids[] = {"setresgid", "setresuid", "setgid", "setuid"};
	static const unsigned long spaces[] = {CLONE_NEWNS, CLONE_NEWNET, CLONE_NEWIPC, CLONE_NEWPID, CLONE_NEWUSER};

	if (!strcmp(layer, "landlock")) {
		fail("landlock_create_ruleset", ENOSYS);
	} else if (!strcmp(layer, "namespaces")) {
		fail("unshare", EPERM);
		fail("clone3", ENOSYS);
		for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++)
			fail_if("clone", EPERM, SCMP_A0(SCMP_CMP_MASKED_EQ, spaces[i], spaces[i]));
	} else if (!strcmp(layer, "mounts")) {
		for (size_t i = 0; i < sizeof mounts / sizeof *mounts; i++)
			fail(mounts[i], EPERM);
	} else if (!strcmp(layer, "uid")) {
		for (size_t i = 0; i < sizeof uids / sizeof *uids; i++)
			fail_if(uids[i], EPERM, SCMP_A0(SCMP_CMP_EQ, 65534)); /* CONFINE_UID; make sets its own again */
		fail("chown", EPERM);
		fail("fchownat", EPERM);
	} else if (!strcmp(layer, "seccomp")) {
		fail("seccomp", ENOSYS);
		fail_if("prctl", EINVAL, SCMP_A0(SCMP_CMP_EQ, PR_SET_SECCOMP));
		fail_if("prctl", EINVAL, SCMP_A0(SCMP_CMP_EQ, PR_GET_SECCOMP));
	} else if (!strcmp(layer, "no_new_privs")) {
		fail_if("prctl", EINVAL, SCMP_A0(SCMP_CMP_EQ, PR_SET_NO_NEW_PRIVS));
	} else {
		fprintf(stderr, "lack: no layer '%s'\n", layer);
		bad = 1;
	}
}

int main(int argc, char **argv)
{
	if (argc < 3 || !(filter = seccomp_init(SCMP_ACT_ALLOW)))
		return 2;
	seccomp_attr_set(filter, SCMP_FLTATR_CTL_NNP, geteuid() != 0);
	for (char *layer = strtok(argv[1], ","); layer; layer = strtok(NULL, ","))
		lack(layer);
	if (bad || seccomp_load(filter)) {
		fprintf(stderr, "lack: cannot load the filter\n");
		return 1;
	}
	execvp(argv[2], argv + 2);
	perror(argv[2]);
	return 127;
}
