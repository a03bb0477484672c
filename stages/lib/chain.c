/*
 * chain.c - see chain.h.
 *
 * What is checked of each verdict: it names the verdict file before it, this trial.json, this
 * run's spec and key; it was made by a pinned program; every side file it names is there and
 * unchanged. And once: the snapshot of the spec is what the run pinned; judge, bench and confirm
 * speak of one candidate, the one on disk; and the checker signed them.
 *
 * SPDX-License-Identifier: MIT
 */
#include "chain.h"

#include "checker_call.h"
#include "defence.h"
#include "json.h"

#include <string.h>

static int broken(struct err *e, const char *path, const char *what)
{
	if (!DEFENCE("promote.chain"))
		return 0;
	err_set(e, EX_BADINPUT, "'%s' %s", path, what);
	return 1;
}

static int same(const struct verdict_in *in, const char *name, const char *want)
{
	const char *got = verdict_in_input(in, name);
	return got && strcmp(got, want) == 0;
}

static int check_files(const struct verdict_in *in, const char *id, struct err *e)
{
	for (const cJSON *o = in->outputs->child; o; o = o->next) {
		char path[TRIAL_PATH], sha[HASH_HEX];
		if (strlen(o->string) > 120 || strstr(o->string, ".."))
			return broken(e, in->path, "names a file outside the trial");
		trial_path(path, id, o->string);
		if (hash_file(path, sha, NULL))
			return broken(e, path, "is missing");
		if (strcmp(sha, o->valuestring) != 0)
			return broken(e, path, "is not the file that was recorded");
	}
	return 0;
}

static int check_tool(const struct stage *s, const struct verdict_in *in, struct err *e)
{
	const cJSON *tool = json_get(in->json, "tool");
	const char *name = tool ? json_get_str(tool, "name", NULL) : NULL;
	const char *sha = tool ? json_get_str(tool, "sha256", NULL) : NULL;
	if (!name || !sha || !hash_is_hex(sha))
		return broken(e, in->path, "does not say which program made it");
	int ok = run_tool_ok(&s->run, name, sha, e);
	return ok < 0 ? -1 : ok ? 0 : broken(e, in->path, "was made by a program that is not pinned");
}

static int check_link(struct stage *s, enum step step, struct err *e)
{
	const struct verdict_in *in = stage_verdict(s, step, e);
	if (!in)
		return 1;
	if (step + 1 < s->step && !same(&s->seen[step + 1], "upstream", in->sha))
		return broken(e, in->path, "is not the verdict that the next step read");
	if (strcmp(in->run, s->run.name) != 0 || !same(in, "trial", s->trial.sha))
		return broken(e, in->path, "is of another trial or run");
	if (!same(in, "spec", s->run.spec_sha256))
		return broken(e, in->path, "was made for another spec");
	if (!same(in, "key", s->run.key_sha256))
		return broken(e, in->path, "was made under another key");
	int rc = check_tool(s, in, e);
	return rc ? rc : check_files(in, s->id, e);
}

static int check_spec(struct stage *s, struct err *e)
{
	const cJSON *pins = json_get(json_get(s->run.json, "pins"), "spec");
	struct buf text = BUF_INIT;
	int rc = 0;
	for (const cJSON *p = pins ? pins->child : NULL; p && !rc; p = p->next)
		rc = run_spec_read(&s->run, p->string, (size_t)256 << 20, &text, NULL, e) ? 1 : 0;
	buf_free(&text);
	return rc;
}

/* judge, bench and confirm must have worked on the sources that tune left behind. */
static int check_candidate(struct stage *s, struct err *e)
{
	static const enum step ran[] = {STEP_JUDGE, STEP_BENCH, STEP_CONFIRM};
	char want[HASH_HEX];
	if (s->seen[STEP_CONFIRM].kind != V_PASS)
		return 0;
	if (stage_candidate_sha(s, "", want, e))
		return 1;
	for (size_t i = 0; i < sizeof ran / sizeof ran[0]; i++) {
		const struct verdict_in *in = &s->seen[ran[i]];
		if (in->kind != V_PASS || !same(in, "candidate", want))
			return broken(e, in->path, "is not about this candidate");
	}
	return 0;
}

/* The wrapper ends a trial whose judge or bench cannot finish; it passes nothing, so it needs
 * no signature. */
static int made_by_wrapper(const struct verdict_in *in)
{
	const cJSON *tool = json_get(in->json, "tool");
	return in->kind != V_PASS && tool && strcmp(json_get_str(tool, "name", ""), "run") == 0;
}

static int check_macs(struct stage *s, struct checker *c, struct err *e)
{
	static const enum step signedsteps[] = {STEP_JUDGE, STEP_BENCH, STEP_CONFIRM};
	for (size_t i = 0; i < sizeof signedsteps / sizeof signedsteps[0]; i++) {
		const struct verdict_in *in = &s->seen[signedsteps[i]];
		struct buf body = BUF_INIT;
		char mac[HASH_HEX];
		int ok = 0;
		if (in->kind == V_SKIP || made_by_wrapper(in))
			continue;
		if (verdict_body(in, &body, mac, e)) {
			buf_free(&body);
			e->code = EX_HARNESS;
			return 1;
		}
		int rc = checker_mac_ok(c, buf_str(&body), body.len, mac, &ok, e);
		buf_free(&body);
		if (rc)
			return -1;
		if (!ok && DEFENCE("promote.mac")) {
			err_set(e, EX_HARNESS, "the signature of '%s' is wrong", in->path);
			return 1;
		}
	}
	return 0;
}

/* The simulated device has no secrets, and fakes of its stages (tests) no checker. */
static int check_signatures(struct stage *s, struct err *e)
{
	char dir[TRIAL_PATH];
	struct checker *c = NULL;
	struct checker_opts o = {.run_dir = dir, .trial = s->id, .stage = "promote"};
	if (s->seen[STEP_JUDGE].kind == V_SKIP ||
	    (s->v.simulated && !json_get(s->seen[STEP_JUDGE].json, "mac")))
		return 0;
	run_path(dir, s->run.name, "");
	if (checker_start(&c, &o, e))
		return -1;
	int rc = check_macs(s, c, e);
	checker_stop(c);
	return rc;
}

int chain_check(struct stage *s, struct err *e)
{
	int rc = 0;
	if (run_is_replay(&s->run))
		return err_set(e, EX_BADINPUT, "run %s is a replay: nothing of it is promoted", s->run.name);
	/* From the end: a verdict is believed about others once the one after it has named it, so
	 * that the message names the very file that was changed. */
	for (int i = (int)s->step - 1; i >= 0 && !rc; i--)
		rc = check_link(s, (enum step)i, e);
	if (!rc)
		rc = check_spec(s, e);
	if (!rc)
		rc = check_candidate(s, e);
	return rc ? rc : check_signatures(s, e);
}
