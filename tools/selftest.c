/*
 * selftest.c - try the judge on something that breaks each of its rules (make selftest).
 *
 * Started by iterate when a run begins or its programs have changed, by far for a run whose judge is here,
 * and by people. Reads stages/selftest/. Writes one file, where asked to; holds the lane of the device.
 *
 * SPDX-License-Identifier: MIT
 */
#include "../stages/lib/device.h"
#include "../stages/lib/file.h"
#include "../stages/lib/lane.h"
#include "../stages/lib/selftest.h"
#include "../stages/lib/spawn.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

static const char HELP[] =
	"selftest - does the judge refuse what breaks its rules, and pass what does not?\n"
	"\n"
	"usage: selftest [--DEVICE=emu] [--out=FILE]      (make selftest DEVICE=cuda)\n"
	"\n"
	"Honest outputs must pass; then at least one wrong one for each rule must be refused, for that\n"
	"rule's reason: elements, rows, precision, NaN, infinity, unwritten, stale, order, guards, inputs,\n"
	"late writes, and floating point as such. By the programs of this build, on this device.\n"
	"--out=FILE: the record as one line of JSON, and on standard output only what failed.\n"
	"\n"
	"exit    0 all as it must be; 70 it is not; 2 usage; 4 no compiler or no such device;\n"
	"        75 try again\n";

static int record(const struct selftest *t, const char *file, struct err *e)
{
	struct jsonw w = {0};
	char self[PATH_MAX];

	if (spawn_tool("checker", self, sizeof self, e) < 0)
		return -1;
	*strrchr(self, '/') = '\0';
	int rc = selftest_write(t, self, &w, e);
	buf_addc(&w.out, '\n');
	if (rc == 0)
		rc = file_write(file, w.out.data, w.out.len, 0644, e);
	jw_free(&w);
	return rc;
}

static int try_judge(struct selftest *t, const char *device, struct err *e)
{
	static char name[TRIAL_NAME], why[DEVICE_WHY];
	static struct gpu gpu;
	struct lane lane = LANE_INIT;

	if (device_resolve(device, name, why, e) < 0)
		return -1;
	t->device = name;
	enum device_class class = device_class_of(name);
	if (class == DEVICE_SIM)
		return err_set(e, EX_BADUSE, "nothing is judged on '%s'", name);
	if (class == DEVICE_CUDA && gpu_find(name, &gpu, e) < 0)
		return -1;
	t->gpu = class == DEVICE_CUDA ? &gpu : NULL;
	if ((t->gpu ? lane_exclusive(&lane, gpu.uuid, e) : lane_share(&lane, name, e)) < 0)
		return -1;
	int rc = selftest_run(t, e);
	lane_drop(&lane);
	return rc;
}

int main(int argc, char **argv)
{
	static struct selftest t = {.talk = 1};
	const char *device = NULL, *out = NULL;
	struct err e = {0};

	prog_name(argv[0]);
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "-h") || !strcmp(argv[i], "--help")) {
			fputs(HELP, stdout);
			return fflush(stdout) ? EX_SYS : EX_DONE;
		}
		if (!strncmp(argv[i], "--DEVICE=", 9))
			device = argv[i] + 9;
		else if (!strncmp(argv[i], "--out=", 6))
			out = argv[i] + 6;
		else
			die(EX_BADUSE, "unknown option '%s'; -h for help", argv[i]);
	}
	t.talk = !out;
	if (try_judge(&t, device && *device ? device : NULL, &e) < 0)
		die_err(&e);
	if (out && record(&t, out, &e) < 0)
		die_err(&e);
	if (!out || t.failed)
		printf("judge on %s: %d of %d specimens of %d rules as they must be (%.2f s)\n", t.device,
		       t.tried - t.failed, t.tried, t.n, t.seconds);
	return t.failed ? EX_HARNESS : EX_DONE;
}
