/*
 * runner_gpus.c - see runner.h: on the far side, which GPUs here will do for a run.
 *
 * SPDX-License-Identifier: MIT
 */
#include "runner.h"

#include "file.h"
#include "hash.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* At home a start of make asks the driver which GPUs will do, and its steps read the answer. Here hello
 * begins that, and the first step keeps it for the others: a third of a second each. By machine and boot,
 * for a folder may be shared; by what the run's GPU is. "" without a GPU. */
static void gpus_path(const struct tar *tar, const char *run, char out[TRIAL_PATH])
{
	char name[TRIAL_PATH], boot[64] = "", sha[HASH_HEX];
	out[0] = '\0';
	run_path(name, run, RUNNER_DEVICE);
	const struct tar_file *t = tar_find(tar, name);
	int fd = t ? open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC) : -1;
	if (fd < 0)
		return;
	ssize_t n = read(fd, boot, sizeof boot - 1);
	close(fd);
	boot[n > 0 ? strcspn(boot, "\n") : 0] = '\0';
	hash_hex(t->data, t->len, sha);
	if (trial_name_ok(boot))
		snprintf(out, TRIAL_PATH, "%s/gpus-%.16s-%s.json", RUNNER_FAR, sha, boot);
}

static void gpus_of_run(const char *run, const char *scratch, char out[TRIAL_PATH * 2])
{
	char name[TRIAL_PATH];
	run_path(name, run, "gpus.json");
	snprintf(out, TRIAL_PATH * 2, "%s/%s", scratch, name);
}

/* Best effort, both: without it the stage asks itself. */
void runner_gpus_bring(const struct tar *tar, const char *run, const char *scratch)
{
	char kept[TRIAL_PATH], here[TRIAL_PATH * 2];
	gpus_path(tar, run, kept);
	gpus_of_run(run, scratch, here);
	if (*kept && file_exists(kept))
		file_copy(kept, here, NULL);
}

void runner_gpus_keep(const struct tar *tar, const char *run, const char *scratch)
{
	char kept[TRIAL_PATH], here[TRIAL_PATH * 2];
	gpus_path(tar, run, kept);
	gpus_of_run(run, scratch, here);
	if (*kept && !file_exists(kept) && file_exists(here))
		file_copy(here, kept, NULL);
}

void runner_gpus_forget(void)
{
	DIR *d = opendir(RUNNER_FAR);
	struct dirent *f;
	while (d && (f = readdir(d))) {
		char path[TRIAL_PATH];
		if (strncmp(f->d_name, "gpus-", 5) != 0 || strlen(f->d_name) > 100)
			continue;
		snprintf(path, sizeof path, "%s/%.100s", RUNNER_FAR, f->d_name);
		unlink(path);
	}
	if (d)
		closedir(d);
}
