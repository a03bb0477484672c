/*
 * tune_gpu.c - configurations in turns in one worker. See tune_gpu.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tune_gpu.h"

#include "cubin.h"
#include "file.h"
#include "worker_pool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Enough for a median; what is close is decided by bench, not here. */
enum { ROUNDS = 9 };
/* A source that hangs does so in most of its configurations, and each costs a second of the lane: after
 * this many, those that were not looked at yet are dropped with them. */
enum { HANGS = 2 };

/* One configuration at the workload in hand. */
struct turn {
	struct launches l;
	struct buf cubin;
	int ready;              /* l and cubin are there */
	double ns[ROUNDS];
};

struct timing {
	struct proof *p;
	struct tune_timing *t;
	struct turn *turn;
	int n;
	struct checker_work w;
	struct worker *worker;
	int64_t limit_ns;       /* of a run */
	int hangs;
	int seen;               /* every one was run at an earlier workload */
	int slot[WORKER_SLOTS]; /* which configuration it holds, -1 none */
	struct cubin *cubin;
};

static void drop(struct tune_timing *t, const char *word)
{
	t->right = 0;
	snprintf(t->word, sizeof t->word, "%s", word);
}

/* ---- one workload ---- */

static int resolve(struct timing *m, int i, const struct axes *axes, struct err *e)
{
	struct tune_timing *t = &m->t[i];
	struct facts f = *m->p->facts;
	struct err why = {0};
	char sha[HASH_HEX];
	int k = image_pick(t->set, t->plan, m->p->spec, axes, &f, &why);

	if (k < 0) {
		drop(t, "refused");
		return 0;
	}
	if (file_read(t->set->path[k], 64u << 20, &m->turn[i].cubin, e) < 0)
		return -1;
	hash_hex(m->turn[i].cubin.data, m->turn[i].cubin.len, sha);
	if (strcmp(sha, t->set->sha[k]))
		return err_set(e, EX_BADINPUT, "'%s' is not what the box made", t->set->path[k]);
	if (cubin_parse(m->turn[i].cubin.data, m->turn[i].cubin.len, m->cubin, e) < 0)
		return -1;
	cubin_facts(m->cubin, &f);
	m->turn[i].ready = plan_resolve(t->plan, m->p->spec, axes, &f, 0, &m->turn[i].l, &why) == 0;
	if (!m->turn[i].ready)
		drop(t, "refused");
	return 0;
}

static int start(struct timing *m, struct err *e)
{
	struct worker_opts o = {.gpu = m->p->gpu, .timeout_ns = m->limit_ns};

	for (int i = 0; i < WORKER_SLOTS; i++)
		m->slot[i] = -1;
	if (worker_pool_take(&m->worker, &o, e) < 0) {
		m->worker = NULL;
		return -1;
	}
	proof_layers(m->p, worker_isolation(m->worker));
	return worker_map(m->worker, 0, &m->w.layout, m->w.fd, e);
}

static void finish(struct timing *m)
{
	struct err none = {0};
	int clean = m->worker && worker_alive(m->worker);

	for (int i = 0; i < WORKER_SLOTS && clean; i++)
		if (m->slot[i] >= 0)
			clean = worker_unload(m->worker, i, &none) == 0;
	if (clean && worker_unmap(m->worker, 0, &none) == 0)
		worker_pool_give(m->worker, m->p->gpu);
	else if (m->worker)
		worker_stop(m->worker);
	m->worker = NULL;
}

static const char *word_of(enum worker_outcome o)
{
	return o == WORKER_REFUSED ? "refused" : o == WORKER_FAULT ? "fault"
	     : o == WORKER_TIMEOUT ? "timeout" : "protocol";
}

/* Dead after a failure: the next start shows whether the GPU is well. */
static int failed(struct timing *m, int i, const struct worker_result *r, struct err *e)
{
	if (r->killed) {
		m->p->unhealthy = 1; /* as in proof.c */
		return err_set(e, EX_HARNESS, "the kernel's process was killed from outside");
	}
	drop(&m->t[i], word_of(r->outcome));
	m->hangs += r->outcome == WORKER_TIMEOUT;
	if (r->outcome == WORKER_REFUSED)
		return 0;
	worker_stop(m->worker);
	m->worker = NULL;
	if (start(m, e) == 0)
		return 0;
	m->p->unhealthy = 1;
	return -1;
}

/* Into its slot, whatever was there. 0 also when it was dropped. */
static int load(struct timing *m, int i, struct err *e)
{
	static const int first[1] = {0};
	int slot = i % WORKER_SLOTS;
	struct worker_result r;
	struct turn *x = &m->turn[i];

	if (m->slot[slot] == i)
		return 0;
	if (m->slot[slot] >= 0 && worker_unload(m->worker, slot, e) < 0)
		return -1;
	m->slot[slot] = -1;
	if (worker_load(m->worker, slot, x->cubin.data, x->cubin.len, &x->l, m->p->spec, 1, first, &r, e) < 0)
		return -1;
	if (r.outcome != WORKER_OK)
		return failed(m, i, &r, e);
	m->slot[slot] = i;
	return 0;
}

/* round -1: new inputs, counted by nobody; then two sets whose references are remembered. */
static int run(struct timing *m, int i, int round, struct err *e)
{
	struct turn *x = &m->turn[i];
	struct checker_prep q = {.rep = (uint64_t)(round + 1), .set = (uint32_t)(round & 1),
				 .perturb = round < 0, .poison = (uint32_t)(round + 1)};
	double scalars[1][CHECKER_SCALARS];
	struct worker_run wr = {.scrub_seed = (uint64_t)(round + 7), .timeout_ns = m->limit_ns,
				.scalars = (const double (*)[CHECKER_SCALARS])scalars};
	struct worker_result r;
	struct compare_result cmp;

	q.n_ws = (uint32_t)x->l.nworkspaces;
	for (uint32_t k = 0; k < q.n_ws; k++)
		q.ws[k] = (uint64_t)x->l.workspace[k].bytes;
	if (load(m, i, e) < 0)
		return -1;
	if (!m->t[i].right)
		return 0;
	if (checker_prepare(m->p->checker, &m->w, &q, scalars[0], e) < 0 ||
	    worker_run(m->worker, i % WORKER_SLOTS, &wr, &r, e) < 0)
		return -1;
	if (r.outcome != WORKER_OK)
		return failed(m, i, &r, e);
	if (checker_verify(m->p->checker, &m->w, &cmp, e) < 0)
		return -1;
	const char *dot = strchr(cmp.code, '.');
	if (!cmp.pass)
		drop(&m->t[i], dot ? dot + 1 : cmp.code);
	if (round >= 0)
		x->ns[round] = (double)r.elapsed_ns;
	return 0;
}

static int cmp_double(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static int rounds(struct timing *m, int workload, struct err *e)
{
	for (int round = -1; round < ROUNDS; round++)
		for (int k = 0; k < m->n; k++) {
			int i = (k + round + 1) % m->n; /* nobody always goes first */
			if (round < 0 && m->hangs >= HANGS && !m->seen && m->t[i].right)
				drop(&m->t[i], "timeout");
			if (m->t[i].right && run(m, i, round, e) < 0)
				return -1;
		}
	for (int i = 0; i < m->n; i++) {
		if (!m->t[i].right)
			continue;
		qsort(m->turn[i].ns, ROUNDS, sizeof(double), cmp_double);
		m->t[i].ns[workload] = m->turn[i].ns[ROUNDS / 2];
	}
	return 0;
}

static int open_work(struct timing *m, int workload, struct err *e)
{
	struct checker_open q = {.mode = CHECKER_PUBLIC, .index = (uint32_t)workload};
	struct axes axes;

	if (checker_draw(m->p->checker, q.mode, q.index, 0, &axes, e) < 0)
		return -1;
	for (int i = 0; i < m->n; i++) {
		if (m->t[i].right && resolve(m, i, &axes, e) < 0)
			return -1;
		const struct launches *l = &m->turn[i].l;
		for (int k = 0; k < l->nworkspaces; k++) {
			uint64_t bytes = (uint64_t)l->workspace[k].bytes;
			q.ws[k] = bytes > q.ws[k] ? bytes : q.ws[k];
			q.n_ws = q.n_ws > (uint32_t)k ? q.n_ws : (uint32_t)k + 1;
		}
	}
	return checker_open(m->p->checker, &q, &m->w, e);
}

int tune_gpu_time(struct proof *p, struct tune_timing *t, int n, struct err *e)
{
	struct timing m = {.p = p, .t = t, .n = n};
	int rc = 0;

	m.turn = xcalloc((size_t)n + 1, sizeof *m.turn);
	m.cubin = xcalloc(1, sizeof *m.cubin);
	for (int k = 0; k < p->spec->npublic && rc == 0; k++) {
		memset(&m.w, 0, sizeof m.w);
		m.w.in_fd = m.w.rw_fd = -1;
		rc = open_work(&m, k, e);
		m.limit_ns = proof_limit(p->spec, m.w.ref_ns);
		m.seen = k > 0;
		if (rc == 0)
			rc = start(&m, e);
		if (rc == 0)
			rc = rounds(&m, k, e);
		finish(&m);
		checker_close(p->checker, &m.w);
		for (int i = 0; i < n; i++) {
			if (m.turn[i].ready)
				launches_free(&m.turn[i].l);
			buf_free(&m.turn[i].cubin);
			memset(&m.turn[i], 0, sizeof m.turn[i]);
		}
	}
	free(m.turn);
	free(m.cubin);
	return rc;
}
