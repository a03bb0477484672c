/*
 * promote.c - close a trial: check the whole chain of evidence, then keep or not.
 *
 * Reads every verdict of the trial, every file they name, the pinned spec of the run and the
 * `after` block of the trial before. Writes trials/NNNN/promote.json, then what follows from it
 * (record.h). Never measures and never opens a key: signatures are checked by the checker.
 *
 * SPDX-License-Identifier: MIT
 */
#include "chain.h"
#include "defence.h"
#include "json.h"
#include "plateau.h"
#include "playbook.h"
#include "record.h"
#include "repair.h"
#include "selftest_record.h"
#include "stage.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { RECENT = 20 }; /* prompts tell 15 of them one by one and group the reasons of all */

static const char HELP[] =
	"usage: promote trials/NNNN/promote.json\n"
	"\n"
	"Close a trial. Recompute every hash that its verdicts recorded, check that each verdict\n"
	"names the one before it, that judge, bench and confirm carry the checker's signature and\n"
	"were isolated well enough, then keep the candidate as champion or not.\n"
	"\n"
	"verdicts\n"
	"  pass      kept: champion/SPEC/DEVICE points at it\n"
	"  reject, inconclusive   as the step that closed the trial decided\n"
	"  invalid   promote.chain (the message names the file), promote.mac, promote.isolation,\n"
	"            promote.selftest, promote.stale_champion, or what an earlier step found; not charged\n"
	"\n"
	"status of a kept one: clean, or rule-dependent, with data.relies: what it relies on, as judge, bench,\n"
	"confirm and the layers of isolation tell (stages/lib/relies.h).\n"
	"\n"
	"data.after is the state that later trials of the run start from: champion {trial,\n"
	"candidate_sha256}, recent (newest 20 trials), closed, charged, reasons {code: count},\n"
	"items {id: {tried, kept, failed}} of the playbook, plateau {run, dry} where the run has that rule,\n"
	"best_ratio (champion against the baseline).\n"
	"\n"
	"exit: 0 verdict written, 2 usage, 3 malformed input, 4 not the pinned build,\n"
	"      70 our fault, 75 trial in use, 111 a system call failed\n";

/* Everything known of the trial when it closes. */
struct closing {
	const struct verdict_in *by;     /* the verdict that decided; confirm's when it passed */
	const struct verdict_in *propose; /* of the final candidate; NULL when it cannot be read */
	char champion[TRIAL_ID];
	char champion_sha[HASH_HEX];
	char candidate[HASH_HEX];        /* "" when there never was one */
	char dir[8];                     /* folder of its sources */
	int kept;
};

/* The step that decided: confirm, or the one that confirm's skip names. */
static const struct verdict_in *decided_by(struct stage *s, struct err *e)
{
	const struct verdict_in *last = stage_verdict(s, STEP_CONFIRM, e);
	if (!last || last->kind != V_SKIP)
		return last;
	const cJSON *by = json_get(last->data, "closed_by");
	const char *name = by ? json_get_str(by, "step", "") : "";
	for (int i = 0; i < STEP_CONFIRM; i++)
		if (strcmp(step_info((enum step)i)->name, name) == 0)
			return stage_verdict(s, (enum step)i, e);
	err_set(e, EX_BADINPUT, "'%s' is skipped but names no step that closed the trial",
		last->path);
	return NULL;
}

/* Identity of the candidate from the recorded hashes: the final choice, or the attempt's. */
static void find_candidate(struct stage *s, struct closing *c)
{
	const char *const dirs[] = {"", "a2", "a1", "a0"};
	for (int i = 0; i < 4; i++) {
		if (stage_candidate_sha(s, dirs[i], c->candidate, NULL))
			continue;
		snprintf(c->dir, sizeof c->dir, "%s", dirs[i]);
		return;
	}
}

static int not_a_layer(const struct verdict_in *in, const char *want)
{
	size_t n = strlen(want);
	const cJSON *list = json_get(in->json, "isolation");
	for (const cJSON *i = list ? list->child : NULL; i; i = i->next)
		if (cJSON_IsString(i) && strncmp(i->valuestring, want, n) == 0 &&
		    (!i->valuestring[n] || i->valuestring[n] == ':'))
			return 0;
	return 1;
}

/* no_new_privs, rlimits, seccomp, and one of Landlock, mount namespace or another uid. */
static const char *weakness(const struct verdict_in *in)
{
	static const char *const must[] = {"no_new_privs", "rlimits", "seccomp"};
	for (size_t i = 0; i < sizeof must / sizeof must[0]; i++)
		if (not_a_layer(in, must[i]))
			return must[i];
	if (not_a_layer(in, "landlock") && not_a_layer(in, "mountns") && not_a_layer(in, "uid"))
		return "landlock, mountns or uid";
	return NULL;
}

/* The programs that judged and timed must have been tried themselves (selftest_record.h), each at its time:
 * a run may have gone on with others. 1 when not. */
static int untried(struct stage *s, struct err *e)
{
	static const struct {
		enum step step;
		const char *name, *input;
	} by[] = {{STEP_JUDGE, "judge", "selftest"}, {STEP_CONFIRM, "bench", "selftest_bench"}};
	char sha[2][HASH_HEX], words[160];
	int rc = s->v.simulated;
	for (int i = 0; i < 2 && !s->v.simulated; i++) {
		const struct verdict_in *in = stage_verdict(s, by[i].step, e);
		cJSON *one = cJSON_CreateObject();
		const cJSON *tool = in ? json_get(in->json, "tool") : NULL;
		cJSON_AddStringToObject(one, by[i].name, json_get_str(tool, "sha256", ""));
		rc = in ? selftest_passed(&s->run, one, sha[i], words, e) : -1;
		cJSON_Delete(one);
		if (rc < 1)
			break;
		if (*sha[i] && (!i || strcmp(sha[0], sha[1]) != 0))
			verdict_input(&s->v, by[i].input, sha[i]);
	}
	if (rc == 0)
		verdict_set(&s->v, V_INVALID, "promote.selftest", "the judge's self-test %.150s", words);
	return rc < 0 ? -1 : !rc;
}

/* Reasons not to keep what confirm passed; 1 when one was found and set. */
static int refuse(struct stage *s, const struct closing *c, const struct verdict_in *confirm,
		  struct err *e)
{
	/* guard ran a compiler on it, the others ran it */
	static const enum step ran[] = {STEP_A0_GUARD, STEP_A1_GUARD, STEP_A2_GUARD,
					 STEP_JUDGE, STEP_BENCH, STEP_CONFIRM};
	for (size_t i = 0; i < sizeof ran / sizeof ran[0]; i++) {
		const struct verdict_in *in = stage_verdict(s, ran[i], e);
		if (!in)
			return -1;
		if (in->kind != V_PASS)
			continue; /* an attempt that was repaired, or not made */
		const char *missing = s->v.simulated ? NULL : weakness(in);
		if (missing && !s->run.allow_weak && DEFENCE("promote.isolation")) {
			verdict_set(&s->v, V_INVALID, "promote.isolation",
				    "%s ran without %s; ALLOW_WEAK=1 accepts that",
				    step_info(ran[i])->name, missing);
			return 1;
		}
		if (missing) {
			verdict_isolation(&s->v, "weak");
			relies_add(&s->v.relies, "isolation", "%s ran without %s, which ALLOW_WEAK=1 accepted: a kernel "
				   "that attacks its judge was held by less. A machine with all layers would be clean",
				   step_info(ran[i])->name, missing);
		}
		if (ran[i] >= STEP_JUDGE) /* tune may have left what guard found */
			relies_join(&s->v.relies, json_get(in->data, "relies"));
	}
	int rc = untried(s, e);
	if (rc)
		return rc;
	const char *against = verdict_in_input(confirm, "champion");
	if (*c->champion_sha && (!against || strcmp(against, c->champion_sha) != 0) &&
	    DEFENCE("promote.stale_champion")) {
		verdict_set(&s->v, V_INVALID, "promote.stale_champion",
			    "confirm did not measure against trial %s, the champion now",
			    c->champion);
		return 1;
	}
	return 0;
}

static int decide(struct stage *s, struct closing *c, struct err *e)
{
	struct err bad = {0};
	int rc = chain_check(s, &bad);
	if (rc < 0) {
		*e = bad;
		return -1;
	}
	if (rc > 0) {
		verdict_set(&s->v, V_INVALID, bad.code == EX_HARNESS ? "promote.mac" : "promote.chain",
			    "%s", bad.text);
		return 0;
	}
	if (c->by->kind != V_PASS) {
		verdict_set(&s->v, c->by->kind, c->by->code, "%s: %s",
			    step_info(c->by->step)->name, c->by->message);
		return 0;
	}
	rc = refuse(s, c, c->by, e);
	if (rc)
		return rc < 0 ? -1 : 0;
	c->kept = 1;
	verdict_set(&s->v, V_PASS, *c->champion ? "promote.kept" : "promote.first", "%s",
		    c->by->message);
	return 0;
}

static void copy(struct jsonw *w, const cJSON *from, const char *key)
{
	const cJSON *item = from ? json_get(from, key) : NULL;
	if (item)
		jw_item(w, key, item);
}

static void put_reasons(struct jsonw *w, const cJSON *old, const char *code)
{
	int seen = 0;
	jw_obj(w, "reasons");
	for (const cJSON *r = old ? old->child : NULL; r; r = r->next) {
		int mine = strcmp(r->string, code) == 0;
		seen |= mine;
		jw_int(w, r->string, (int64_t)r->valuedouble + mine);
	}
	if (!seen)
		jw_int(w, code, 1);
	jw_end(w);
}

/* Our own trouble is not charged to the search, nor is a search that has ended. */
static int charged(const struct stage *s)
{
	return s->v.kind != V_INVALID && strcmp(s->v.code, "propose.space_done") != 0 &&
	       strcmp(s->v.code, "propose.plateau") != 0;
}

static void put_item(struct jsonw *w, const char *id, const cJSON *old, int more, int kept, int failed)
{
	jw_obj(w, id);
	jw_int(w, "tried", json_get_int(old, "tried", 0) + more);
	jw_int(w, "kept", json_get_int(old, "kept", 0) + kept);
	jw_int(w, "failed", json_get_int(old, "failed", 0) + failed);
	jw_end(w);
}

/* How often each item of a playbook was tried, kept, failed; no member while none was. */
static void put_items(struct stage *s, const struct closing *c, const cJSON *old)
{
	struct jsonw *w = &s->v.data;
	const char *id = c->propose ? json_get_str(c->propose->data, "playbook_item", "") : "";
	int seen = 0, n = 0, mine = charged(s) && playbook_id_ok(id);
	if (!old && !mine)
		return;
	jw_obj(w, "items");
	for (const cJSON *i = old ? old->child : NULL; i; i = i->next, n++) {
		int me = mine && strcmp(i->string, id) == 0;
		seen |= me;
		put_item(w, i->string, i, me, me && c->kept, me && !c->kept);
	}
	if (mine && !seen && n < 4 * PLAYBOOK_ITEMS) /* the record stays small, however often prompts/ change */
		put_item(w, id, NULL, 1, c->kept, !c->kept);
	jw_end(w);
}

static void put_after(struct stage *s, const struct closing *c, const cJSON *old, double ratio)
{
	struct jsonw *w = &s->v.data;
	const int ended = strcmp(s->v.code, "propose.plateau") == 0; /* no news for a prompt */
	int n = !ended;
	const char *champion = c->kept ? s->id : c->champion;
	jw_obj(w, "after");
	if (*champion) {
		jw_obj(w, "champion");
		jw_str(w, "trial", champion);
		jw_str(w, "candidate_sha256", c->kept ? c->candidate : c->champion_sha);
		jw_end(w);
	} else {
		jw_null(w, "champion");
	}
	jw_arr(w, "recent");
	if (!ended)
		jw_str(w, NULL, s->id);
	const cJSON *recent = old ? json_get(old, "recent") : NULL;
	for (const cJSON *r = recent ? recent->child : NULL; r && n < RECENT; r = r->next, n++)
		jw_item(w, NULL, r);
	jw_end(w);
	jw_int(w, "closed", 1 + (old ? json_get_int(old, "closed", 0) : 0));
	jw_int(w, "charged", charged(s) +
	       (old ? json_get_int(old, "charged", 0) : 0));
	put_reasons(w, old ? json_get(old, "reasons") : NULL, s->v.code);
	put_items(s, c, old ? json_get(old, "items") : NULL);
	plateau_put(w, &s->run, old, charged(s), c->kept);
	if (c->kept && ratio > 0)
		jw_num(w, "best_ratio", ratio);
	else
		jw_num(w, "best_ratio", old ? json_get_num(old, "best_ratio", NAN) : NAN);
	jw_end(w);
}

/* A number of the newest of confirm and bench that has it; NaN when neither ran. */
static double measured(struct stage *s, const char *key)
{
	static const enum step from[] = {STEP_CONFIRM, STEP_BENCH};
	for (int i = 0; i < 2; i++) {
		const struct verdict_in *in = stage_verdict(s, from[i], NULL);
		double v = in ? json_get_num(in->data, key, NAN) : NAN;
		if (!isnan(v))
			return v;
	}
	return NAN;
}

static void put_data(struct stage *s, const struct closing *c, const cJSON *after)
{
	struct jsonw *w = &s->v.data;
	jw_bool(w, "kept", c->kept);
	jw_int(w, "attempt", s->attempt);
	jw_bool(w, "charged", charged(s));
	if (!c->kept) {
		jw_obj(w, "closed_by");
		jw_str(w, "step", c->by->kind == V_PASS ? "promote" : step_info(c->by->step)->name);
		jw_str(w, "code", s->v.code);
		jw_end(w);
	}
	if (*c->candidate) {
		jw_str(w, "candidate_sha256", c->candidate);
		jw_str(w, "candidate_dir", c->dir);
		verdict_input(&s->v, "candidate", c->candidate);
	}
	const cJSON *proposed = c->propose ? c->propose->data : NULL;
	repair_told(s, w);
	copy(w, proposed, "item");
	copy(w, proposed, "hypothesis");
	copy(w, proposed, "playbook_item");
	copy(w, proposed, "plateau");
	const char *parent = json_get_str(proposed, "parent", c->champion);
	jw_str(w, "parent", *parent ? parent : NULL);
	jw_str(w, "champion_before", *c->champion ? c->champion : NULL);
	static const char *const figures[] = {"ratio", "ratio_lo95", "ratio_hi95", "ratio_baseline",
		"ratio_baseline_lo95", "ratio_baseline_hi95"};
	for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) {
		double v = measured(s, figures[i]);
		if (!isnan(v))
			jw_num(w, figures[i], v);
	}
	put_after(s, c, after, measured(s, "ratio_baseline"));
}

static int promote_work(struct stage *s, struct err *e)
{
	struct closing c = {0};
	const cJSON *after;
	if (stage_after(s, &after, e) || stage_champion(s, c.champion, c.champion_sha, e))
		return -1;
	c.by = decided_by(s, e);
	if (!c.by)
		return -1;
	c.propose = repair_proposal(s, NULL);
	find_candidate(s, &c);
	if (decide(s, &c, e))
		return -1;
	put_data(s, &c, after);
	double best = after ? json_get_num(after, "best_ratio", 0) : 0;
	if (c.kept)
		verdict_headline(&s->v, "KEPT %.2fx of the baseline%s", measured(s, "ratio_baseline"),
				 s->v.relies.n ? ", rule-dependent" : "");
	else if (best > 0)
		verdict_headline(&s->v, "%s; best so far %.2fx", s->v.code, best);
	return 0;
}

static int promote_after(struct stage *s, struct err *e)
{
	return record_roll(s->id, e);
}

int main(int argc, char **argv)
{
	static const struct stage_about about = {
		.stage = "promote", .help = HELP, .work = promote_work, .after = promote_after,
		.always = 1,
	};
	return stage_main(argc, argv, &about);
}
