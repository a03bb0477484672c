/*
 * summary.c - see summary.h. For programs that report to a person: it prints.
 *
 * SPDX-License-Identifier: MIT
 */
#include "summary.h"

#include "device.h"
#include "file.h"
#include "gpu.h"
#include "json.h"
#include "ledger.h"
#include "reason.h"
#include "spawn.h"
#include "verdict.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void add_one(cJSON *counts, const char *code)
{
	cJSON *n = cJSON_GetObjectItemCaseSensitive(counts, code);
	if (n)
		cJSON_SetNumberValue(n, n->valuedouble + 1);
	else
		cJSON_AddNumberToObject(counts, code, 1);
}

static void count_repairs(struct summary *s, const struct verdict_in *in)
{
	int turns = (int)json_get_int(in->data, "repairs", 0);
	if (turns <= 0)
		return;
	/* Closed within an attempt, "a2/guard"? Then it was not mended. */
	const char *by = json_get_str(json_get(in->data, "closed_by"), "step", "");
	s->turns += turns;
	s->repaired++;
	s->mended += !strchr(by, '/');
	add_one(s->errors, json_get_str(in->data, "first_error", "?"));
}

static void count(struct summary *s, const struct verdict_in *in)
{
	const char *text = in->message;
	int over = strcmp(in->code, "propose.plateau") == 0;
	int done = over || strcmp(in->code, "propose.space_done") == 0;
	const char *state = json_get_str(json_get(in->data, "plateau"), "state", "");
	if (!done && (in->kind == V_REJECT || in->kind == V_INCONCLUSIVE))
		clusters_add(&s->clusters, in->code, text);
	const char *kind = json_get_str(json_get(in->json, "proposer"), "kind", "");
	s->closed++;
	s->asked += !reason_search_over(in->code) && *kind && strcmp(kind, "sweep") != 0;
	s->unusable += reason_unusable_reply(in->code);
	count_repairs(s, in);
	s->space_done += done && !over;
	s->plateaued += over;
	s->widened += strcmp(state, "widened") == 0;
	if (done && strncmp(text, "a0/propose: ", 12) == 0)
		text += 12;
	if (done || (in->kind != V_PASS && !s->space_done && !s->plateaued))
		snprintf(s->words, sizeof s->words, "%s", text);
	switch (in->kind) {
	case V_PASS:
		s->kept++;
		if (json_get_num(in->data, "ratio", 0) > 0)
			s->gain *= json_get_num(in->data, "ratio", 1);
		return;
	case V_INCONCLUSIVE:
		s->inconclusive++;
		break;
	case V_INVALID:
		s->invalid++;
		break;
	default:
		s->rejected++;
	}
	add_one(s->reasons, in->code);
}

/* The champion may be of an earlier run. */
static void read_relies(struct summary *s)
{
	struct verdict_in in;
	size_t at = 0;
	if (!*s->champion || verdict_read(s->champion, STEP_PROMOTE, &in, NULL))
		return;
	const cJSON *list = json_get(in.data, "relies");
	for (const cJSON *i = list ? list->child : NULL; i && at < sizeof s->relies - 40; i = i->next)
		at += (size_t)snprintf(s->relies + at, sizeof s->relies - at, "%s%.30s", at ? ", " : "",
				       json_get_str(i, "rule", ""));
	verdict_in_free(&in);
}

void summary_read(const struct run *r, struct summary *s)
{
	char id[TRIAL_ID];
	memset(s, 0, sizeof *s);
	s->reasons = cJSON_CreateObject();
	s->errors = cJSON_CreateObject();
	s->gain = 1;
	for (int64_t i = 0; run_trial(r, i, id) == 0; i++) {
		struct verdict_in in;
		if (verdict_read(id, STEP_PROMOTE, &in, NULL))
			continue;
		count(s, &in);
		const cJSON *after = json_get(in.data, "after");
		const cJSON *champion = after ? json_get(after, "champion") : NULL;
		if (champion)
			snprintf(s->champion, sizeof s->champion, "%s",
				 json_get_str(champion, "trial", ""));
		s->dry = (int)json_get_int(json_get(after, "plateau"), "dry", 0);
		s->best_ratio = after ? json_get_num(after, "best_ratio", 0) : 0;
		verdict_in_free(&in);
	}
	clusters_sort(&s->clusters);
	read_relies(s);
}

void summary_free(struct summary *s)
{
	cJSON_Delete(s->reasons);
	cJSON_Delete(s->errors);
	s->reasons = s->errors = NULL;
}

/* The commonest reasons first, at most four. */
static void print_counts(const cJSON *counts)
{
	if (!counts->child)
		printf("-");
	for (int shown = 0; shown < 4; shown++) {
		cJSON *top = NULL;
		for (cJSON *i = counts->child; i; i = i->next)
			if (i->valuedouble > 0 && (!top || i->valuedouble > top->valuedouble))
				top = i;
		if (!top)
			break;
		printf("%s%s %.0f", shown ? ", " : "", top->string, top->valuedouble);
		cJSON_SetNumberValue(top, -top->valuedouble);
	}
	for (cJSON *i = counts->child; i; i = i->next)
		cJSON_SetNumberValue(i, fabs(i->valuedouble));
	putchar('\n');
}

/* What several trials failed of in the same way, three at most. */
static void print_clusters(const struct summary *s)
{
	for (int i = 0; i < s->clusters.n && i < 3 && s->clusters.c[i].n > 1; i++) {
		const struct cluster *c = &s->clusters.c[i];
		printf("  %s %d of %d: %s: %s\n", i ? "         " : "repeated ", c->n, s->closed, c->code, c->message);
	}
}

static void print_reasons(const struct summary *s)
{
	printf("  reasons   ");
	print_counts(s->reasons);
	if (s->unusable)
		printf("  replies   %d of %d had no usable candidate (%.0f %%)\n", s->unusable, s->asked,
		       100.0 * s->unusable / (s->asked ? s->asked : 1));
	if (!s->repaired)
		return;
	printf("  repairs   %d of %d trials mended in %d turn%s; first errors: ", s->mended, s->repaired, s->turns,
	       s->turns > 1 ? "s" : "");
	print_counts(s->errors);
}

static void print_spend(const struct run *r, const struct summary *s)
{
	struct ledger_amount t;
	if (ledger_total(r, &t, NULL) || (!t.calls && t.gpu_s <= 0)) {
		puts("  spend     nothing");
		return;
	}
	printf("  spend     ");
	if (t.calls)
		printf("%lld model calls, %lld tokens in, %lld out", (long long)t.calls, (long long)t.tokens_in,
		       (long long)t.tokens_out);
	if (t.usd > 0)
		printf(", $%.4f", t.usd);
	if (t.gpu_s > 0)
		printf("%s%.1f GPU s", t.calls ? ", " : "", t.gpu_s);
	putchar('\n');
	double percent = (s->gain - 1) * 100;
	if (s->kept && percent > 0)
		printf("  cost      %.0f tokens, $%.4f, %.2f GPU s per accepted percent (%+.1f %% in this run)\n",
		       (double)(t.tokens_in + t.tokens_out) / percent, t.usd / percent, t.gpu_s / percent, percent);
}

const char *summary_note(const struct run *r)
{
	const int engine = run_str(r, "model_sha256", NULL) && strcmp(r->device, "emu") == 0;
	return engine ? "an engine, on this processor" : device_note(r->device);
}

void summary_rows(const struct run *r, const struct summary *s)
{
	const char *note = summary_note(r);
	printf("  trials    %d of %lld: %d kept, %d rejected, %d inconclusive, %d invalid\n",
	       s->closed, (long long)r->n, s->kept, s->rejected, s->inconclusive, s->invalid);
	print_reasons(s);
	print_clusters(s);
	if (s->space_done)
		printf("  space     done after %d of %lld trials: %s\n", s->closed - s->space_done,
		       (long long)r->n, s->words);
	else if (s->plateaued)
		printf("  plateau   stopped after %d of %lld trials: %s\n", s->closed - s->plateaued, (long long)r->n, s->words);
	else if (run_int(r, "plateau", 0) > 0)
		printf("  plateau   %d trial%s since the last keep, %d widened; the search widens at %lld\n", s->dry,
		       s->dry == 1 ? "" : "s", s->widened, (long long)run_int(r, "plateau", 0));
	else if (r->n == 1 && s->closed && !s->kept)
		printf("  because   %s\n", s->words);
	if (*s->champion && s->best_ratio > 0)
		printf("  champion  trial %s, %.3fx of the baseline%s%s%s\n", s->champion,
		       s->best_ratio, *note ? " (" : "", note, *note ? ")" : "");
	else if (*s->champion)
		printf("  champion  trial %s\n", s->champion);
	else
		puts("  champion  none: the baseline stands");
	if (*s->relies)
		printf("  status    rule-dependent: %s (`make champion` says why)\n", s->relies);
	print_spend(r, s);
}

static void summary_budget(const struct run *r)
{
	static const char *const keys[] = {"max_calls", "max_tokens", "max_usd", "max_gpu_s",
		"max_minutes", "max_wall_s"};
	int any = 0;
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
		double v = run_num(r, keys[i], 0);
		if (v > 0)
			printf("%s%s %g", any++ ? ", " : "", keys[i] + 4, v);
	}
	puts(any ? "" : "no limit");
}

void summary_lanes(const struct run *r)
{
	static struct gpu g[GPU_MAX];
	long holder[GPU_MAX];
	int n = gpu_lanes(r, g, holder, NULL), held = 0;
	if (n < 1)
		return;
	printf("  lanes     %d GPU%s: ", n, n > 1 ? "s" : "");
	for (int i = 0; i < n; i++)
		if (holder[i])
			printf("%sGPU %d held by process %ld", held++ ? ", " : "", g[i].index, holder[i]);
	puts(held ? "" : n > 1 ? "all free" : "free");
}

void summary_banner(const struct run *r, const char *tried)
{
	const char *note = summary_note(r), *key = run_str(r, "key_env", "");
	const char *from = json_get_str(r->json, "state_from", NULL);
	char first[TRIAL_ID], last[TRIAL_ID];
	run_trial(r, 0, first);
	run_trial(r, r->n - 1, last);
	printf("touchstone: run %s, %s on %s%s%s%s, trials %s to %s\n", r->name, r->spec, r->device,
	       *note ? " (" : "", note, *note ? ")" : "", first, last);
	if (*run_str(r, "device_why", ""))
		printf("  device    %s\n", run_str(r, "device_why", ""));
	summary_lanes(r);
	if (*run_str(r, "runner", ""))
		printf("  runner    %s: compiled, judged and timed there\n", run_str(r, "runner", ""));
	printf("  proposer  %s%s%s  WIDTH=%lld SEED=%lld\n", r->proposer,
	       *run_str(r, "model", "") ? " " : "", run_str(r, "model", ""), (long long)r->width,
	       (long long)r->seed);
	if (*tried)
		printf("  judge     self-test %s\n", tried);
	printf("  budget    ");
	summary_budget(r);
	if (from)
		printf("  reuse     records up to trial %s, champion %s\n", from,
		       run_champion(r) ? run_champion(r) : "none yet (the baseline)");
	else
		printf("  reuse     nothing yet: first run of %s on %s\n", r->spec, r->device);
	if (*key && getenv(key))
		printf("  key       in the environment (%s): make and its children can see it; a 0600 "
		       "file named by the profile is safer\n", key);
	fflush(stdout);
}

int summary_page(const char *bin, const char *running, struct err *e)
{
	char program[600];
	snprintf(program, sizeof program, "%.580s/render", bin);
	const char *argv[] = {program, running ? "--running" : NULL, running, NULL};
	struct spawn_request q = {.argv = argv, .out = SPAWN_NULL, .err = SPAWN_KEEP, .wall_s = 300};
	struct spawn_result res;
	if (spawn_run(&q, &res, e))
		return -1;
	int code = res.code;
	spawn_result_free(&res);
	return code ? err_set(e, EX_HARNESS, "the report could not be written") : 0;
}

int summary_print(const struct run *r, const char *bin, struct err *e)
{
	struct summary s;
	summary_read(r, &s);
	printf("run %s is done: %s on %s\n", r->name, r->spec, r->device);
	summary_rows(r, &s);
	summary_free(&s);
	fflush(stdout);
	if (summary_page(bin, NULL, e))
		return -1;
	puts("  report    reports/index.html");
	return 0;
}
