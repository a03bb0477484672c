/*
 * fake_stage.c - a stage that decides at once: the pipeline's tests run on it.
 *
 * Copied or linked under the name of every stage into a folder that TS_BIN names. Writes what the
 * pipeline needs of a real stage (candidate files, ratios) and appends its step to $FAKE_CALLS.
 * By trial number: every third passes, every fourth is rejected by guard, the rest by bench.
 *
 * $FAKE_DO is "STEP:WHAT" for one step of trial $FAKE_TRIAL: "sleep" for half a minute, "fail" (exit 70), "child" (a confined
 * process died), "again" (exit 75), "mute" (no verdict, exit 0), "crash", "killed" (SIGKILL).
 *
 * SPDX-License-Identifier: MIT
 */
#include "../../stages/lib/file.h"
#include "../../stages/lib/jsonw.h"
#include "../../stages/lib/stage.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int misbehave(struct stage *s, struct err *e)
{
	const char *what = getenv("FAKE_DO"), *trial = getenv("FAKE_TRIAL");
	const char *name = step_info(s->step)->name;
	size_t n = strlen(name);
	if (!what || strncmp(what, name, n) != 0 || what[n] != ':' ||
	    (trial && strcmp(trial, s->id) != 0))
		return 0;
	what += n + 1;
	if (strcmp(what, "sleep") == 0)
		sleep(30);
	if (strcmp(what, "fail") == 0)
		return err_set(e, EX_HARNESS, "told to fail");
	if (strcmp(what, "again") == 0)
		return err_set(e, EX_AGAIN, "told to wait");
	if (strcmp(what, "child") == 0) {
		s->child_died = 1;
		return err_set(e, EX_HARNESS, "told that the child died");
	}
	if (strcmp(what, "crash") == 0)
		raise(SIGSEGV);
	if (strcmp(what, "killed") == 0)
		raise(SIGKILL);
	if (strcmp(what, "mute") == 0)
		_exit(0);
	return 0;
}

static int write_candidate(struct stage *s, const char *dir, struct err *e)
{
	char path[TRIAL_PATH], file[64], text[64];
	snprintf(file, sizeof file, "%s%scandidate", dir, *dir ? "/" : "");
	trial_path(path, s->id, file);
	int n = snprintf(text, sizeof text, "// candidate of trial %s\n", s->id);
	if (dir_make(path, e))
		return -1;
	snprintf(file, sizeof file, "%s%scandidate/kernel.cu", dir, *dir ? "/" : "");
	if (stage_side(s, file, text, (size_t)n, e))
		return -1;
	snprintf(file, sizeof file, "%s%scandidate/plan.json", dir, *dir ? "/" : "");
	return stage_side(s, file, "{}\n", 3, e);
}

static int count_call(struct stage *s, struct err *e)
{
	char line[64];
	const char *calls = getenv("FAKE_CALLS");
	snprintf(line, sizeof line, "%s %s", s->id, step_info(s->step)->name);
	return calls ? file_append(calls, line, e) : 0;
}

static int work(struct stage *s, struct err *e)
{
	long n = trial_number(s->id);
	if (count_call(s, e) || misbehave(s, e))
		return -1;
	verdict_set(&s->v, V_PASS, "ok", "fake");
	if (s->step == STEP_A0_PROPOSE) {
		jw_str(&s->v.data, "item", "fake");
		return write_candidate(s, "a0", e);
	}
	if (s->step == STEP_A0_GUARD && n % 4 == 0)
		verdict_set(&s->v, V_REJECT, "run.child_died", "fake reject");
	if (s->step == STEP_TUNE)
		return write_candidate(s, "", e);
	if (s->step < STEP_TUNE)
		return 0;
	struct buf k = BUF_INIT, p = BUF_INIT;
	char champion[TRIAL_ID], sha[HASH_HEX];
	int rc = stage_candidate(s, &k, &p, e) || stage_champion(s, champion, sha, e) ? -1 : 0;
	buf_free(&k);
	buf_free(&p);
	if (*sha)
		verdict_input(&s->v, "champion", sha);
	if (s->step == STEP_BENCH && n % 3)
		verdict_set(&s->v, V_REJECT, "run.harness", "fake: slower");
	jw_num(&s->v.data, "ratio", 1.0 + (double)n / 100);
	if (s->step == STEP_CONFIRM)
		jw_num(&s->v.data, "ratio_baseline", 1.0 + (double)n / 50);
	return rc;
}

int main(int argc, char **argv)
{
	static struct stage_about about = {.help = "usage: a fake stage\n", .work = work};
	const char *slash = strrchr(argv[0], '/');
	about.stage = slash ? slash + 1 : argv[0];
	return stage_main(argc, argv, &about);
}
