/*
 * rig_cuda.c - reps on a GPU: prepare in the checker, run in a worker, verify in the checker. See rig.h.
 *
 * A rep is answered for by the arm that ran: a fault, a run past its deadline or a dead worker is that arm's, and
 * a new worker must then start and prove the GPU well, else the session is void.
 *
 * SPDX-License-Identifier: MIT
 */
#include "rig_cuda_part.h"

#include "defence.h"
#include "file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A run may take this many times the champion's slowest window, and two seconds in any case: a hang then costs
 * little, what is within is measured or given up as hopeless (20 times), and a host that stops for a moment is
 * not taken for a hang, which would be held against the candidate. */
#define DEADLINE_FACTOR 50
#define DEADLINE_LEAST_NS 2000000000

/* A burst of the sustained guard, per block of one quad: see shoot_burst. */
#define SUSTAINED_S 1.0

int64_t rig_cuda_now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

struct rig_cuda *rig_cuda_of(struct rig *r)
{
	if (!r->cuda)
		r->cuda = xcalloc(1, sizeof *r->cuda);
	return r->cuda;
}

static struct worker *worker_of(struct rig *r, enum raw_arm arm)
{
	return r->cuda->worker[r->cuda->two && arm == RAW_CANDIDATE];
}

static void stop_workers(struct rig_cuda *c)
{
	for (int i = 0; i < 2; i++) {
		if (c->worker[i])
			worker_stop(c->worker[i]);
		c->worker[i] = NULL;
	}
	c->mapped = 0;
	for (int i = 0; i < RAW_ARMS; i++)
		c->arm[i].loaded = 0;
}

int rig_cuda_worker(struct rig *r, struct err *e)
{
	struct rig_cuda *c = rig_cuda_of(r);
	struct worker_opts o = {.gpu = r->gpu.uuid, .timeout_ns = r->spec->limits.run_s * 1000000000};
	int two = r->apart && !r->self;
	if (c->worker[0] && two != c->two)
		stop_workers(c);
	c->two = two;
	for (int i = 0; i <= c->two; i++) {
		if (!c->worker[i] && worker_start(&c->worker[i], &o, e) != 0)
			return -1;
		rig_layers(r, worker_isolation(c->worker[i]));
	}
	return 0;
}

/* ---- arms ---- */

static int read_image(const struct image_set *set, int i, struct buf *out, struct err *e)
{
	char hex[HASH_HEX];
	if (file_read(set->path[i], RIG_FILE_MAX, out, e) != 0)
		return -1;
	hash_hex(buf_str(out), out->len, hex);
	if (strcmp(hex, set->sha[i]) != 0)
		return err_set(e, EX_BADINPUT, "%s is not the artefact on record", set->path[i]);
	return 0;
}

int rig_resolve(const struct rig *r, enum raw_arm arm, const struct axes *axes, struct buf *image, struct cubin *c,
		struct launches *l, char text[256], struct err *e)
{
	const struct rig_arm *a = &r->arm[r->self && arm == RAW_CANDIDATE ? RAW_CHAMPION : arm];
	struct facts facts = r->facts;
	int i = image_pick(a->set, a->plan, r->spec, axes, &r->facts, e);
	int rc = i < 0 ? -1 : 0;
	if (rc == 0 && read_image(a->set, i, image, e) != 0)
		return -1;
	if (rc == 0 && cubin_parse(buf_str(image), image->len, c, e) != 0)
		return -1;
	if (rc == 0) {
		cubin_facts(c, &facts);
		rc = plan_resolve(a->plan, r->spec, axes, &facts, 0, l, e);
	}
	if (rc == 0)
		return 0;
	/* A candidate may be unable to run at a secret size: its fault, told when it is to start. */
	if (arm != RAW_CANDIDATE || r->self || e->code != EX_BADINPUT)
		return -1;
	snprintf(text, 256, "%.250s", e->text);
	return 1;
}

static void forget(struct rig_cuda *c)
{
	for (int i = 0; i < RAW_ARMS; i++) {
		struct rig_module *m = &c->arm[i];
		if (m->live)
			launches_free(&m->l);
		buf_free(&m->image);
		memset(m, 0, sizeof *m);
	}
}

void rig_cuda_free(struct rig *r)
{
	if (r->cuda) {
		stop_workers(r->cuda);
		forget(r->cuda);
	}
	free(r->cuda);
	free(r->size);
}

void rig_cuda_pass(struct rig *from, struct rig *to)
{
	if (!rig_cuda_of(from)->worker[0])
		return;
	rig_cuda_of(to)->worker[0] = from->cuda->worker[0];
	from->cuda->worker[0] = NULL;
}

static int resolve_all(struct rig *r, const struct axes *axes, int copies, struct checker_open *o, struct err *e)
{
	struct cubin *cubin = xcalloc(1, sizeof *cubin);
	int rc = 0;
	for (int i = 0; i < RAW_ARMS && rc >= 0; i++) {
		struct rig_module *m = &r->cuda->arm[i];
		if (!r->arm[i].present)
			continue;
		rc = rig_resolve(r, (enum raw_arm)i, axes, &m->image, cubin, &m->l, m->refused, e);
		m->live = rc == 0;
		if (m->live && i == RAW_CANDIDATE && !rig_cuda_fits(r, &m->l, copies, m->refused))
			continue;
		for (int j = 0; m->live && j < m->l.nworkspaces && j < PLAN_MAX_WORKSPACES; j++) {
			uint64_t bytes = (uint64_t)m->l.workspace[j].bytes;
			o->ws[j] = bytes > o->ws[j] ? bytes : o->ws[j];
			o->n_ws = (uint32_t)j + 1 > o->n_ws ? (uint32_t)j + 1 : o->n_ws;
		}
	}
	free(cubin);
	return rc < 0 ? -1 : 0;
}

int rig_cuda_open(struct rig *r, int workload, int copies, struct err *e)
{
	struct rig_cuda *c = rig_cuda_of(r);
	const struct rig_workload *w = &r->workload[workload];
	struct checker_open o = {.mode = w->mode, .index = w->index, .baseline = c->looks};
	c->workload = workload;
	c->slowest_ns = 0;
	c->block = -1;
	c->copies = 0;
	if (rig_cuda_worker(r, e) != 0 || resolve_all(r, &w->axes, copies, &o, e) != 0)
		return -1;
	for (; c->copies < copies; c->copies++) {
		struct checker_work *m = &c->work[c->copies];
		if (checker_open(r->checker, &o, m, e) != 0)
			return -1;
		for (int i = 0; i <= c->two; i++)
			if (worker_map(c->worker[i], c->copies, &m->layout, m->fd, e) != 0)
				return c->copies++, -1;
	}
	c->mapped = c->copies;
	return 0;
}

static int open_workload(void *ctx, int session, int workload, struct err *e)
{
	struct rig *r = ctx;
	(void)session;
	/* where references take long, looks keep to the sets and the regime that have theirs */
	rig_cuda_of(r)->looks = r->self ? 0 : r->size[workload].fresh ? 1 : CHECKER_RATIO_ONLY;
	return rig_cuda_open(r, workload, r->size[workload].windows, e);
}

static int stop(void *ctx, enum raw_arm arm, struct err *e)
{
	struct rig *r = ctx;
	struct rig_module *m = &r->cuda->arm[arm];
	struct worker *w = worker_of(r, arm);
	int was = m->loaded;
	m->loaded = 0;
	return was && w && worker_alive(w) ? worker_unload(w, (int)arm, e) : 0;
}

static void fail(enum shot_outcome *o, char text[256], enum shot_outcome outcome, const char *what)
{
	*o = outcome;
	snprintf(text, 256, "%.*s", (int)(strcspn(what, "\n") < 250 ? strcspn(what, "\n") : 250), what);
}

/* What an arm did; its dead worker is replaced, which shows whether the GPU is well. */
static int judge_worker(struct rig *r, const struct worker_result *w, enum shot_outcome *o, char text[256],
			struct err *e)
{
	static const enum shot_outcome of[] = {
		[WORKER_OK] = SHOT_OK, [WORKER_REFUSED] = SHOT_FAULT, [WORKER_FAULT] = SHOT_FAULT,
		[WORKER_TIMEOUT] = SHOT_TIMEOUT, [WORKER_DIED] = SHOT_PROTOCOL};
	if (w->killed)
		return err_set(e, EX_AGAIN, "somebody killed the worker");
	if (w->outcome == WORKER_OK)
		return 0;
	fail(o, text, of[w->outcome], w->text[0] ? w->text : worker_outcome_name(w->outcome));
	if (w->outcome == WORKER_REFUSED)
		return 0;
	stop_workers(r->cuda);
	if (rig_cuda_worker(r, e) == 0)
		return 0;
	if (e->code != EX_AGAIN)
		return -1;
	fail(o, text, SHOT_ENV, e->text);
	return 0;
}

/* What `of` runs, into the place of `arm`. */
int rig_cuda_load(struct rig *r, enum raw_arm arm, enum raw_arm of, int windows, enum shot_outcome *o, char text[256],
		     struct err *e)
{
	struct rig_cuda *c = r->cuda;
	const struct rig_module *m = &c->arm[of];
	struct worker_result *res = xcalloc(1, sizeof *res);
	int mem[WORKER_WINDOWS];
	for (int i = 0; i < windows; i++)
		mem[i] = i % c->copies;
	int rc = stop(r, arm, e);
	if (rc == 0)
		rc = worker_load(worker_of(r, arm), (int)arm, buf_str(&m->image), m->image.len, &m->l, r->spec,
				 windows, mem, res, e);
	if (rc == 0)
		rc = judge_worker(r, res, o, text, e);
	if (rc == 0 && *o == SHOT_OK)
		c->arm[arm].loaded = windows;
	free(res);
	return rc;
}

static int load(struct rig *r, enum raw_arm arm, int windows, enum shot_outcome *o, char text[256], struct err *e)
{
	return rig_cuda_load(r, arm, arm, windows, o, text, e);
}

int rig_cuda_start(struct rig *r, enum raw_arm arm, enum shot_outcome *o, char text[256], struct err *e)
{
	const struct rig_module *m = &r->cuda->arm[arm];
	if (m->refused[0]) {
		fail(o, text, SHOT_FAULT, m->refused);
		return 0;
	}
	return load(r, arm, r->cuda->copies, o, text, e);
}

static int start(void *ctx, enum raw_arm arm, enum shot_outcome *outcome, char text[256], struct err *e)
{
	return rig_cuda_start(ctx, arm, outcome, text, e);
}

/* ---- reps ---- */

static int64_t deadline(const struct rig *r, int windows)
{
	int64_t most = r->spec->limits.run_s * 1000000000;
	int64_t want = DEADLINE_FACTOR * r->cuda->slowest_ns * windows / r->cuda->copies;
	if (r->cuda->slowest_ns == 0)
		return most;
	want = want > DEADLINE_LEAST_NS ? want : DEADLINE_LEAST_NS;
	return want < most ? want : most;
}

int rig_cuda_run(struct rig *r, struct shot *s, int windows, uint64_t seed, struct worker_result *res, struct err *e)
{
	struct rig_cuda *c = r->cuda;
	struct worker_run q = {.scrub_seed = seed, .drain = s->phase == RAW_DRAIN, .look = c->looking,
			       .timeout_ns = deadline(r, windows), .scalars = c->scalars};
	if (worker_run(worker_of(r, s->arm), (int)s->arm, &q, res, e) != 0)
		return -1;
	if (s->arm == RAW_CHAMPION && res->outcome == WORKER_OK && s->phase != RAW_SUSTAINED &&
	    res->elapsed_ns > c->slowest_ns)
		c->slowest_ns = res->elapsed_ns;
	return judge_worker(r, res, &s->outcome, s->text, e);
}

/* Each copy has a set of its own, so that no window holds a result that another one needs. */
int rig_cuda_prepare(struct rig *r, const struct shot *s, struct err *e)
{
	struct rig_cuda *c = r->cuda;
	const struct session_size *z = r->size ? &r->size[s->workload] : NULL;
	const struct launches *l = &c->arm[s->arm].l;
	uint64_t ring = z ? (uint64_t)z->ring : 1u << 30;
	int64_t from = rig_cuda_now();
	for (int i = 0; i < c->copies; i++) {
		uint64_t rep = (r->rep_base + s->rep) * RIG_COPIES + (uint64_t)i;
		struct checker_prep p = {.rep = rep, .set = (uint32_t)((s->set + (uint64_t)i) % ring),
					 .perturb = !z || z->fresh, .regime = c->regime, .poison = (uint32_t)rep,
					 .ratio = c->looking ? CHECKER_RATIO_LOOSE : 0};
		for (int j = 0; j < l->nworkspaces && j < PLAN_MAX_WORKSPACES; j++)
			p.ws[p.n_ws++] = (uint64_t)l->workspace[j].bytes;
		if (checker_prepare(r->checker, &c->work[i], &p, c->scalars[i], e) != 0)
			return -1;
	}
	for (int i = c->copies; i < WORKER_WINDOWS; i++)
		memcpy(c->scalars[i], c->scalars[i % c->copies], sizeof c->scalars[i]);
	c->prepare_ns = (rig_cuda_now() - from) / c->copies;
	return 0;
}

int rig_cuda_verify(struct rig *r, struct shot *s, struct err *e)
{
	struct compare_result *q = xcalloc(1, sizeof *q);
	int rc = 0;
	s->check = RAW_RIGHT;
	for (int i = 0; i < r->cuda->copies && rc == 0 && s->check == RAW_RIGHT; i++) {
		rc = checker_verify(r->checker, &r->cuda->work[i], q, e);
		if (rc == 0 && !q->pass && DEFENCE("bench.wrong_output")) {
			char text[128];
			snprintf(text, sizeof text, "%s%s%s", q->code, q->output[0] ? ": output " : "", q->output);
			fail(&s->outcome, s->text, SHOT_WRONG, text);
			s->check = RAW_WRONG;
		}
	}
	free(q);
	return rc;
}

/* Where a graph and a module lie is drawn again for each block of a confirmation, in drawn order; a rep that
 * counts nowhere warms each up. */
static int renew(struct rig *r, struct shot *s, struct err *e)
{
	struct rig_cuda *c = r->cuda;
	enum raw_arm rival = s->phase == RAW_ANCHOR ? RAW_BASELINE : RAW_CHAMPION;
	int block = (int)s->phase * 65536 + (s->phase == RAW_MEASURE ? s->block : s->block / 8);
	struct worker_result *res = xcalloc(1, sizeof *res);
	int rc = 0, flip = (int)(session_word(r->order_seed, "load", s->session, s->workload, block, 0) & 1);
	if (c->two && (s->phase == RAW_MEASURE || s->phase == RAW_ANCHOR || s->phase == RAW_DRAIN) &&
	    c->block != block) {
		c->block = block;
		for (int i = 0; i < 2 && rc == 0 && s->outcome == SHOT_OK; i++) {
			struct shot warm = {.arm = i == flip ? rival : RAW_CANDIDATE, .phase = RAW_WARM};
			rc = load(r, warm.arm, c->copies, &warm.outcome, warm.text, e);
			if (rc == 0 && warm.outcome == SHOT_OK)
				rc = rig_cuda_run(r, &warm, c->copies, s->rep, res, e);
			if (warm.outcome != SHOT_OK) {
				s->arm = warm.arm;
				fail(&s->outcome, s->text, warm.outcome, warm.text);
			}
		}
	}
	free(res);
	return rc;
}

/* Launches back to back, many to a window: a chip that is kept busy. All workloads together get about a second of
 * each arm; both arms make the same number of launches. Looked at in full at its end. */
static int shoot_burst(struct rig *r, struct shot *s, struct err *e)
{
	struct rig_cuda *c = r->cuda;
	double own = (double)(c->slowest_ns > 1000 ? c->slowest_ns : 1000) / c->copies * 1e-9;
	double burst = SUSTAINED_S / r->spec->npublic / (2 * r->limits.sustained_quads);
	int windows = own * WORKER_WINDOWS < burst ? WORKER_WINDOWS : own < burst ? (int)(burst / own) : 1;
	int64_t ns = 0, runs = (int64_t)(burst / (own * windows)) + 1;
	struct worker_result *res = xcalloc(1, sizeof *res);
	windows = windows < c->copies ? c->copies : windows;
	int rc = c->arm[s->arm].loaded == windows ? 0 : load(r, s->arm, windows, &s->outcome, s->text, e);
	if (rc == 0 && s->outcome == SHOT_OK)
		rc = rig_cuda_prepare(r, s, e);
	s->start = (uint64_t)(rig_cuda_now() - r->t0);
	for (int64_t i = 0; i < runs && rc == 0 && s->outcome == SHOT_OK; i++) {
		rc = rig_cuda_run(r, s, windows, s->rep, res, e);
		ns += res->elapsed_ns;
	}
	s->stop = s->start + (uint64_t)ns;
	free(res);
	return rc == 0 && s->outcome == SHOT_OK ? rig_cuda_verify(r, s, e) : rc;
}

static int shoot(void *ctx, struct shot *s, struct err *e)
{
	struct rig *r = ctx;
	struct rig_cuda *c = r->cuda;
	uint64_t seed = (r->rep_base + s->rep) * RIG_COPIES;
	r->t0 = r->t0 ? r->t0 : rig_cuda_now();
	if (s->phase == RAW_SUSTAINED)
		return shoot_burst(r, s, e);
	if (rig_cuda_company(r, s, e) != 0)
		return -1;
	if (s->outcome == SHOT_OK && (renew(r, s, e) != 0 || (s->outcome == SHOT_OK && rig_cuda_look(r, s, e) != 0)))
		return -1;
	if (s->outcome != SHOT_OK)
		return 0;
	struct worker_result *res = xcalloc(1, sizeof *res);
	int rc = rig_cuda_prepare(r, s, e);
	s->start = (uint64_t)(rig_cuda_now() - r->t0);
	if (rc == 0)
		rc = rig_cuda_run(r, s, c->copies, seed, res, e);
	s->stop = s->start + (uint64_t)(res->elapsed_ns > 0 ? res->elapsed_ns : 0);
	free(res);
	return rc == 0 && s->outcome == SHOT_OK ? rig_cuda_verify(r, s, e) : rc;
}

static void close_workload(void *ctx)
{
	struct rig *r = ctx;
	struct rig_cuda *c = r->cuda;
	struct err e;
	for (int i = 0; i < RAW_ARMS; i++)
		if (stop(r, (enum raw_arm)i, &e) != 0)
			stop_workers(c);
	for (int k = 0; k < c->copies; k++) {
		for (int i = 0; i < 2; i++)
			if (k < c->mapped && c->worker[i] && worker_alive(c->worker[i]) &&
			    worker_unmap(c->worker[i], k, &e) != 0)
				stop_workers(c);
		checker_close(r->checker, &c->work[k]);
	}
	c->copies = 0;
	forget(c);
}

/* ---- the machine around a session ---- */

int rig_cuda_state(struct rig *r, int session, struct gpu_question *q, struct err *e)
{
	struct rig_cuda *c = rig_cuda_of(r);
	struct rig_state *s = &c->state[c->states < RIG_STATES ? c->states++ : RIG_STATES - 1];
	*s = (struct rig_state){.session = session, .self = r->self, .apart = c->two};
	return gpu_state_told(q, &s->gpu, e);
}

/* The workers end with their session: the next one's are new. */
static int end_session(void *ctx, struct shot *s, struct err *e)
{
	struct rig *r = ctx;
	struct rig_cuda *c = r->cuda;
	struct gpu_question q;
	int had = c->states;
	if (gpu_state_ask(&q, r->gpu.uuid, e) != 0)
		return -1;
	stop_workers(c); /* a context takes a tenth of a second to go */
	if (rig_cuda_state(r, s->session, &q, e) != 0)
		return -1;
	for (int i = had - 1; i < c->states; i++) {
		const struct gpu_state *g = &c->state[i].gpu;
		char why[128];
		if (i < 0 || g->foreign <= 0) /* -1: cannot be told here, as bench.json says */
			continue;
		snprintf(why, sizeof why, "%d other compute processes on the GPU (pid %d)", g->foreign, g->foreign_pid);
		fail(&s->outcome, s->text, SHOT_ENV, why);
	}
	return 0;
}

const struct session_ops RIG_CUDA_OPS = {open_workload, start, stop, shoot, close_workload, end_session};
