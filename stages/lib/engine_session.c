/*
 * engine_session.c - see engine_session.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "engine_session.h"

#include "defence.h"
#include "hash.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void engine_session_prompts(const char *seed, int session, int workload, int place, int pair, int vocab, int n, int32_t *ids)
{
	char text[192];
	uint8_t digest[32];
	for (int i = 0; i < n; i++) {
		const uint8_t *p = digest + 4 * (i % 8);
		if (i % 8 == 0) {
			int len = snprintf(text, sizeof text, "%s:prompt:%d:%d:%d:%d:%d", seed, session, workload, place, pair,
					   i / 8);
			hash_bytes(text, (size_t)len, digest);
		}
		const uint32_t u = (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
		ids[i] = (int32_t)((uint64_t)u * (uint64_t)vocab >> 32);
	}
}

static enum shot_outcome charge(enum engine_outcome o)
{
	return o == ENGINE_OK ? SHOT_OK : o == ENGINE_TIMEOUT ? SHOT_TIMEOUT : SHOT_PROTOCOL;
}

static void say(enum engine_outcome o, const char *when, char text[256])
{
	static const char *const WORDS[] = {
		[ENGINE_OK] = "ok", [ENGINE_DIED] = "died", [ENGINE_TIMEOUT] = "did not answer in time",
		[ENGINE_EARLY] = "answered before it had the prompts", [ENGINE_EXTRA] = "wrote more than was asked for",
		[ENGINE_GARBAGE] = "said something else than ready", [ENGINE_RANGE] = "gave an id outside the vocabulary"};
	snprintf(text, 256, "the engine %s %s", WORDS[o], when);
}

/* ---- the ops ---- */

static int open_workload(void *ctx, int session, int workload, struct err *e)
{
	struct engine_session *s = ctx;
	if (workload >= s->tasks)
		return err_set(e, EX_HARNESS, "session %d: workload %d of %d", session, workload, s->tasks);
	s->now = workload;
	s->at_phase = s->at_block = -1;
	if (s->t0 == 0)
		s->t0 = now_ns();
	return 0;
}

/* The first thing that went wrong is what the session says. */
static void keep_fault(struct engine_session *s, enum raw_arm arm, enum shot_outcome o, const char *text)
{
	if (s->fault.outcome != SHOT_OK)
		return;
	s->fault = (struct shot){.outcome = o, .arm = arm, .workload = s->now};
	snprintf(s->fault.text, sizeof s->fault.text, "%.255s", text);
}

static int end_arm(struct engine_session *s, enum raw_arm arm, enum engine_outcome o, struct err *e)
{
	struct engine_end end;
	char text[256];
	const int sound = o == ENGINE_OK;
	if (!s->live[arm])
		return 0;
	s->live[arm] = 0;
	if (s->io->close(s->io_ctx, arm, &o, &end, e) != 0)
		return -1;
	for (int i = s->lasting ? 0 : s->now; i <= (s->lasting ? s->tasks - 1 : s->now); i++) {
		if (end.max_rss > s->max_rss[arm][i])
			s->max_rss[arm][i] = end.max_rss;
		if (end.gpu_bytes > s->gpu_bytes[arm][i])
			s->gpu_bytes[arm][i] = end.gpu_bytes;
	}
	if (sound && o != ENGINE_OK) {
		say(o, "when it was to end", text);
		keep_fault(s, arm, charge(o), text);
	}
	engine_end_free(&end);
	return 0;
}

static int stop(void *ctx, enum raw_arm arm, struct err *e)
{
	return end_arm(ctx, arm, ENGINE_OK, e);
}

static int start(void *ctx, enum raw_arm arm, enum shot_outcome *outcome, char text[256], struct err *e)
{
	struct engine_session *s = ctx;
	enum engine_outcome o = ENGINE_OK;
	if (end_arm(s, arm, ENGINE_OK, e) != 0 || s->io->open(s->io_ctx, arm, &o, e) != 0)
		return -1;
	s->live[arm] = 1;
	*outcome = charge(o);
	if (o == ENGINE_OK)
		return 0;
	say(o, "while it loaded the model", text);
	return end_arm(s, arm, o, e);
}

static void end_arms(struct engine_session *s)
{
	struct err e;
	for (int a = 0; a < RAW_ARMS; a++)
		if (end_arm(s, (enum raw_arm)a, ENGINE_OK, &e) != 0)
			keep_fault(s, (enum raw_arm)a, SHOT_ENV, e.text);
}

static void close_workload(void *ctx)
{
	struct engine_session *s = ctx;
	if (!s->lasting)
		end_arms(s);
}

/* Where the prompts of a shot come from: see the header. */
static void prompts_of(struct engine_session *s, const struct shot *q, int *place, int *pair)
{
	if (s->at_phase != (int)q->phase || s->at_block != q->block) {
		s->at_phase = (int)q->phase;
		s->at_block = q->block;
		s->shots = 0;
	}
	const int n = s->shots++;
	*place = (int)q->phase * 65536 + q->block;
	*pair = n / 2;
	if (q->phase == RAW_SOLO) {
		*place = RAW_MEASURE * 65536;
		*pair = n;
	} else if (q->block >= SESSION_SOLO_WARM) {
		*place = *pair = 0;
	}
}

static void write_line(struct engine_session *s, const struct engine_sample *m, const struct engine_batch *b)
{
	struct jsonw w = {0};
	char sha[HASH_HEX];
	const size_t ids = (size_t)b->batch * (size_t)b->steps;
	hash_hex(b->out, ids * sizeof *b->out, sha);
	jw_obj(&w, NULL);
	jw_int(&w, "session", m->session);
	jw_int(&w, "workload", m->workload);
	jw_int(&w, "arm", m->arm);
	jw_int(&w, "phase", m->phase);
	jw_int(&w, "block", m->block);
	jw_int(&w, "pair", m->pair);
	jw_int(&w, "sent_ns", b->sent_ns);
	jw_arr(&w, "stamp_ns");
	for (int t = 0; t < b->steps; t++)
		jw_int(&w, NULL, b->stamp[t]);
	jw_end(&w);
	jw_str(&w, "tokens_sha256", sha);
	if (m->arm == RAW_CANDIDATE) {
		jw_arr(&w, "tokens");
		for (size_t i = 0; i < ids; i++)
			jw_int(&w, NULL, b->out[i]);
		jw_end(&w);
	}
	jw_end(&w);
	buf_add(&s->lines, w.out.data, w.out.len);
	buf_addc(&s->lines, '\n');
	jw_free(&w);
}

/* Keeps the batch and its tokens. */
static void keep_sample(struct engine_session *s, const struct engine_sample *m, struct engine_batch *b)
{
	if (s->samples == s->room) {
		s->room = 2 * s->room + 64;
		s->sample = xrealloc(s->sample, (size_t)s->room * sizeof *s->sample);
	}
	s->sample[s->samples++] = *m;
	write_line(s, m, b);
	s->answer = xrealloc(s->answer, (size_t)(s->answers + 1) * sizeof *s->answer);
	s->answer[s->answers++] = (struct engine_answer){s->samples - 1, 0, b->out};
	b->out = NULL;
}

static int ask(struct engine_session *s, struct shot *q, int32_t *ids, struct engine_batch *b, struct err *e)
{
	enum engine_outcome o = ENGINE_OK;
	struct engine_sample m = {.session = q->session, .workload = q->workload, .block = q->block, .arm = q->arm,
				  .phase = q->phase, .rep = q->rep};
	prompts_of(s, q, &m.place, &m.pair);
	engine_session_prompts(s->seed, q->session, q->workload, m.place, m.pair, s->vocab, b->batch * b->prompt, ids);
	const int64_t began = now_ns() - s->t0;
	if (s->io->ask(s->io_ctx, q->arm, b, &o, e) != 0)
		return -1;
	q->outcome = charge(o);
	q->start = (uint64_t)began;
	q->stop = (uint64_t)(began + (o == ENGINE_OK ? b->stamp[b->steps - 1] : 0));
	q->check = RAW_UNCHECKED; /* until the engine is gone */
	if (o != ENGINE_OK) {
		say(o, "while timed", q->text);
		return end_arm(s, q->arm, o, e);
	}
	m.ttft = b->stamp[0];
	m.total = b->stamp[b->steps - 1];
	keep_sample(s, &m, b);
	return 0;
}

static int shoot(void *ctx, struct shot *q, struct err *e)
{
	struct engine_session *s = ctx;
	const struct engine_task *t = &s->task[q->workload];
	int32_t *ids = xcalloc((size_t)t->batch * (size_t)t->prompt, sizeof *ids);
	struct engine_batch b = {.batch = t->batch, .prompt = t->prompt, .steps = t->steps, .ids = ids,
				 .limit_s = s->limit_s + s->step_s * t->steps, .watch = q->phase == RAW_WARM};
	b.out = xcalloc((size_t)t->batch * (size_t)t->steps, sizeof *b.out);
	b.stamp = xcalloc((size_t)t->steps, sizeof *b.stamp);
	int rc = ask(s, q, ids, &b, e);
	free(ids);
	free(b.out);
	free(b.stamp);
	return rc;
}

/* ---- after the session: all arms are reaped ---- */

/* Were these very tokens given to these prompts before, and right? What the candidate says is looked at in any case. */
static int known(const struct engine_session *s, const struct engine_answer *a)
{
	const struct engine_sample *m = &s->sample[a->sample];
	const struct engine_task *t = &s->task[m->workload];
	const size_t bytes = (size_t)t->batch * (size_t)t->steps * sizeof *a->token;
	for (int i = 0; i < s->answers && m->arm != RAW_CANDIDATE; i++) {
		const struct engine_answer *b = &s->answer[i];
		const struct engine_sample *o = &s->sample[b->sample];
		if (b->right && o->workload == m->workload && o->place == m->place &&
		    o->pair == m->pair && memcmp(a->token, b->token, bytes) == 0)
			return 1;
	}
	return 0;
}

static void wrong(struct engine_session *s, enum raw_arm arm, int workload, const char *what, const char *code)
{
	char text[256];
	snprintf(text, sizeof text, "tokens of %s are not the model's: %.80s", what, code);
	s->now = workload;
	keep_fault(s, arm, SHOT_WRONG, text);
}

static int judge_one(struct engine_session *s, struct engine_answer *a, struct err *e)
{
	const struct engine_sample *m = &s->sample[a->sample];
	const struct engine_task *t = &s->task[m->workload];
	const int n = t->batch * t->prompt;
	const char *code = "ok";
	int rc = 0;
	if (!known(s, a)) {
		int32_t *ids = xcalloc((size_t)n, sizeof *ids);
		engine_session_prompts(s->seed, m->session, m->workload, m->place, m->pair, s->vocab, n, ids);
		rc = s->judge->batch(s->judge_ctx, t, ids, a->token, &code, e);
		free(ids);
		s->judged += (size_t)t->batch * (size_t)t->steps;
	}
	if (rc != 0)
		return -1;
	a->right = strcmp(code, "ok") == 0 || !DEFENCE("bench.replay");
	raw_set_check(s->raw, m->rep, a->right ? RAW_RIGHT : RAW_WRONG);
	if (!a->right)
		wrong(s, m->arm, m->workload, "a timed batch", code);
	return 0;
}

/* The candidate's first: then what the others said is mostly known. */
static int judge_arms(struct engine_session *s, int candidate, struct err *e)
{
	int rc = 0;
	for (int i = 0; i < s->answers && rc == 0 && s->fault.outcome == SHOT_OK; i++)
		if ((s->sample[s->answer[i].sample].arm == RAW_CANDIDATE) == candidate)
			rc = judge_one(s, &s->answer[i], e);
	return rc;
}

static int judge_session(struct engine_session *s, struct err *e)
{
	const char *code = "ok";
	int rc = judge_arms(s, 1, e);
	if (rc == 0 && s->answers > 0 && s->fault.outcome == SHOT_OK) {
		rc = s->judge->all(s->judge_ctx, &code, e);
		if (rc == 0 && strcmp(code, "ok") != 0 && DEFENCE("bench.replay")) {
			wrong(s, RAW_CANDIDATE, 0, "all timed batches", code);
			raw_set_check(s->raw, s->sample[s->answer[0].sample].rep, RAW_WRONG);
		}
	}
	if (rc == 0)
		rc = judge_arms(s, 0, e);
	s->judge->drop(s->judge_ctx);
	return rc;
}

static void drop_answers(struct engine_session *s)
{
	for (int i = 0; i < s->answers; i++)
		free(s->answer[i].token);
	s->answers = 0;
}

/* Others at work on the GPU are nobody's fault, and come before what they may have caused. */
static int look_around(struct engine_session *s, int session, struct err *e)
{
	char why[128];
	const int rc = s->io->disturbed ? s->io->disturbed(s->io_ctx, session, why, e) : 0;
	if (rc == 1) {
		s->fault = (struct shot){.outcome = SHOT_ENV};
		snprintf(s->fault.text, sizeof s->fault.text, "%.127s", why);
	}
	return rc < 0 ? -1 : 0;
}

static int end_session(void *ctx, struct shot *q, struct err *e)
{
	struct engine_session *s = ctx;
	end_arms(s);
	int rc = look_around(s, q->session, e);
	if (rc == 0)
		rc = judge_session(s, e);
	drop_answers(s);
	if (s->fault.outcome != SHOT_OK) {
		q->outcome = s->fault.outcome;
		q->arm = s->fault.arm;
		q->workload = s->fault.workload;
		memcpy(q->text, s->fault.text, sizeof q->text);
	}
	s->fault = (struct shot){0};
	return rc;
}

const struct session_ops ENGINE_OPS = {open_workload, start, stop, shoot, close_workload, end_session};

void engine_session_free(struct engine_session *s)
{
	drop_answers(s);
	free(s->answer);
	free(s->sample);
	buf_free(&s->lines);
	s->answer = NULL;
	s->sample = NULL;
	s->samples = s->room = 0;
}
