/*
 * selftest.c - the judge is tried before it judges. See selftest.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "selftest_part.h"

#include "buf.h"
#include "file.h"
#include "ieee.h"
#include "tool.h"
#include "verdict.h"
#include "worker_pool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- what came of it ---- */

static struct selftest_rule *rule_of(struct selftest *t, const char *name)
{
	for (int i = 0; i < t->n; i++)
		if (!strcmp(t->rule[i].name, name))
			return &t->rule[i];
	if (t->n == SELFTEST_RULES)
		return &t->rule[SELFTEST_RULES - 1];
	snprintf(t->rule[t->n].name, sizeof t->rule[0].name, "%s", name);
	return &t->rule[t->n++];
}

void selftest_say(struct selftest *t, int ok, const char *rule, const char *what, const char *got)
{
	struct selftest_rule *r = rule_of(t, rule);

	t->tried++;
	r->tried++;
	t->failed += !ok;
	r->failed += !ok;
	if (!ok && !*t->words)
		snprintf(t->words, sizeof t->words, "%.40s (%.80s: %.60s)", rule, what, got);
	if (t->talk || !ok)
		printf("  %-5s %-20s %s: %s\n", ok ? "ok" : "FAIL", rule, what, got);
}

static int has_word(const char *words, const char *word)
{
	size_t n = strlen(word);

	if (!strcmp(words, "any"))
		return strcmp(word, "ok") != 0;
	for (const char *p = words; (p = strstr(p, word)); p += n)
		if ((p == words || p[-1] == ' ') && (p[n] == ' ' || !p[n]))
			return 1;
	return 0;
}

void selftest_judged(struct selftest *t, const char *rule, const char *what, const char *words, const char *word)
{
	char got[120];

	if (!strcmp(word, "ok"))
		snprintf(got, sizeof got, strcmp(words, "ok") ? "ACCEPTED" : "passes");
	else
		snprintf(got, sizeof got, "refused, judge.%s", word);
	selftest_say(t, has_word(words, word), rule, what, got);
}

/* ---- memory ---- */

int selftest_on_gpu(const struct play *p)
{
	return p->t->gpu != NULL;
}

static int copy(struct play *p, enum checker_way way, struct err *e)
{
	return selftest_on_gpu(p) ? checker_copy(p->checker, &p->w.w, way, NULL, NULL, e) : 0;
}

int selftest_fetch(struct play *p, struct err *e)
{
	return copy(p, CHECKER_GET, e);
}

static int map(struct play *p, struct err *e)
{
	const struct mem_layout *l = &p->w.w.layout;
	int in = p->w.w.in_fd, rw = p->w.w.rw_fd;

	if (selftest_on_gpu(p) && checker_copy(p->checker, &p->w.w, CHECKER_GET, &in, &rw, e) < 0)
		return -1;
	p->in = mmap(NULL, l->in_bytes, PROT_READ, MAP_SHARED, in, 0);
	p->rw = mmap(NULL, l->rw_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, rw, 0);
	if (selftest_on_gpu(p)) {
		close(in);
		close(rw);
	}
	if (p->in == MAP_FAILED || p->rw == MAP_FAILED)
		return err_sys(e, "cannot map the self-test's memory");
	p->right = xcalloc(1, l->rw_bytes);
	return 0;
}

static void unmap(struct play *p)
{
	if (p->right) {
		munmap(p->in, p->w.w.layout.in_bytes);
		munmap(p->rw, p->w.w.layout.rw_bytes);
	}
	free(p->right);
	p->right = NULL;
}

/* ---- an arm that writes what a specimen says ---- */

static void spoil(struct play *p, const struct mem_buf *b)
{
	struct spoil s = {.got = p->rw + b->offset, .buf = b};
	int64_t dims[SPEC_MAX_RANK], n;
	const struct spec_tensor *t = &p->spec->output[b->index];

	if (spec_shape(p->spec, t, &p->w.w.axes, dims, &n, NULL) < 0)
		return;
	s.n = (size_t)n;
	s.row = (size_t)dims[t->rank - 1];
	for (int i = 0; i < 4; i++)
		s.in[i] = p->in + mem_find(&p->w.w.layout, MEM_INPUT, i)->offset;
	p->s->spoil(&s);
}

static int touch(struct play *p, struct err *e)
{
	const struct mem_layout *l = &p->w.w.layout;

	for (uint32_t i = 0; i < l->n; i++) {
		int64_t at = p->s->at == AT_END ? (int64_t)l->buf[i].bytes : p->s->at;
		if (!strcmp(l->buf[i].name, p->s->touch))
			return checker_touch(p->checker, &p->w.w, p->s->way, i, at, e);
	}
	return err_set(e, EX_HARNESS, "the self-test has no buffer '%s'", p->s->touch);
}

static int played_run(struct arm *a, const struct arm_run_opts *q, struct arm_result *out, struct err *e)
{
	struct play *p = (struct play *)(void *)a;
	const struct specimen *s = p->s;

	(void)q;
	if (copy(p, CHECKER_GET, e) < 0)
		return -1;
	for (uint32_t i = 0; i < p->w.w.layout.n && s->leave < 2; i++) {
		const struct mem_buf *b = &p->w.w.layout.buf[i];
		int mine = s->output && !strcmp(b->name, s->output);
		if (b->kind != MEM_OUTPUT || (mine && s->leave))
			continue;
		memcpy(p->rw + b->offset, p->right + b->offset, b->bytes);
		if (mine && s->spoil)
			spoil(p, b);
	}
	if (copy(p, CHECKER_PUT, e) < 0 || (s->touch && touch(p, e) < 0))
		return -1;
	out->status = ARM_OK;
	out->late_ns = s->late_ns;
	return 0;
}

static void played_close(struct arm *a)
{
	(void)a;
}

static const struct arm_ops PLAYED_OPS = {.run = played_run, .close = played_close};

/* One rep with `s` in the candidate's place. */
static int play(struct play *p, const struct specimen *s, const struct checker_prep *prep, struct err *e)
{
	struct proof_out *out = xcalloc(1, sizeof *out);
	struct arm *own = p->w.arm;

	p->s = s;
	p->arm.ops = &PLAYED_OPS;
	p->w.arm = &p->arm;
	int rc = proof_rep(&p->w, prep, ARM_FORWARD, 1, out, e);
	p->w.arm = own;
	if (rc == 0)
		selftest_judged(p->t, s->rule, s->what, s->words, out->word);
	free(out);
	return rc;
}

/* A rep of the honest kernel; what it wrote is kept. */
int selftest_honest(struct play *p, const struct checker_prep *prep, struct err *e)
{
	struct proof_out *out = xcalloc(1, sizeof *out);
	int rc = proof_rep(&p->w, prep, ARM_FORWARD, 1, out, e);

	if (rc == 0)
		rc = copy(p, CHECKER_GET, e);
	if (rc == 0)
		selftest_judged(p->t, "honest", fill_regime_name(prep->regime), "ok", out->word);
	if (rc == 0)
		memcpy(p->right, p->rw, p->w.w.layout.rw_bytes);
	free(out);
	return rc;
}

/* ---- the parts ---- */

static int specimens(struct play *p, struct err *e)
{
	struct checker_prep prep = {.ratio = 1};
	int rc = 0, first = 1;

	for (const struct specimen *s = SPECIMENS; s->rule && rc == 0; s++) {
		if (first || s->regime != prep.regime) {
			prep.regime = s->regime;
			prep.rep = ++p->rep;
			rc = selftest_honest(p, &prep, e);
			first = 0;
		}
		prep.poison = s->poison;
		if (rc == 0)
			rc = play(p, s, &prep, e);
	}
	return rc;
}

/* The right outputs of a rep are wrong in the next, whether its set is another or a few elements. */
static int stale(struct play *p, struct err *e)
{
	static const struct specimen SET = {.rule = "fresh.inputs", .what = "outputs of another set of inputs",
					    .words = "any"};
	static const struct specimen REP = {.rule = "fresh.inputs", .words = "any",
					    .what = "outputs from before a few inputs changed"};
	struct checker_prep prep = {.rep = ++p->rep, .perturb = 1, .ratio = 1};
	int rc = selftest_honest(p, &prep, e);

	prep.rep = ++p->rep;
	if (rc == 0)
		rc = play(p, &REP, &prep, e);
	prep.set = 1;
	return rc == 0 ? play(p, &SET, &prep, e) : rc;
}

/* ---- opening ---- */

/* Our own problem, near our own programs. */
static int find_dir(char dir[PATH_MAX], struct err *e)
{
	static const char *const up[] = {"/../../stages/selftest", "/../../../stages/selftest"};
	char self[PATH_MAX];

	if (spawn_tool("checker", self, sizeof self, e) < 0)
		return -1;
	*strrchr(self, '/') = '\0';
	for (size_t i = 0; i < sizeof up / sizeof *up; i++)
		if (snprintf(dir, PATH_MAX, "%s%s", self, up[i]) < PATH_MAX && file_exists(dir))
			return 0;
	return err_set(e, EX_NOENV, "cannot find stages/selftest near '%s'", self);
}

static int build(struct play *p, struct err *e)
{
	char dir[PATH_MAX + 16];
	struct image *m = &p->honest;

	snprintf(dir, sizeof dir, "%s/baseline", p->dir);
	if (image_load(m, p->spec, dir, "kernel.cu", "plan.json", e) < 0)
		return -1;
	int rc = selftest_on_gpu(p) ? image_build_gpu(m, p->spec, p->dir, p->t->gpu->arch, NULL, e)
				    : image_build(m, p->spec, "emu-fast", NULL, NULL, e);
	if (rc == 0 && !m->ok)
		return err_set(e, EX_HARNESS, "the kernel of the self-test does not compile: %.200s", m->box.message);
	p->own = (struct proof_arm){.plan = m->plan, .set = selftest_on_gpu(p) ? &m->set : NULL,
				    .artefact = m->box.path, .artefact_sha = m->box.sha256};
	return rc;
}

static int open_all(struct play *p, struct err *e)
{
	const struct gpu *g = p->t->gpu;
	struct checker_open q = {.mode = CHECKER_PUBLIC, .baseline = 1};
	struct checker_opts o = {.device = p->t->device, .gpu = g ? g->uuid : NULL, .spec_dir = p->dir,
				 .trial = "selftest", .stage = "selftest"};

	if (find_dir(p->dir, e) < 0 || spec_load(p->dir, &p->spec, e) < 0 ||
	    build(p, e) < 0 || checker_start(&p->checker, &o, e) < 0)
		return -1;
	p->proof = (struct proof){.checker = p->checker, .spec = p->spec, .device = p->t->device,
				  .gpu = o.gpu, .facts = g ? &g->facts : NULL};
	if (proof_open(&p->proof, &p->own, &q, &p->w, e) < 0)
		return -1;
	if (p->w.refused[0])
		return err_set(e, EX_HARNESS, "the kernel of the self-test cannot run: %.200s", p->w.refused);
	return map(p, e);
}

static void close_all(struct play *p)
{
	unmap(p);
	proof_close(&p->w);
	worker_pool_stop();
	checker_stop(p->checker);
	image_free(&p->honest);
	spec_free(p->spec);
}

int selftest_run(struct selftest *t, struct err *e)
{
	struct play *p = xcalloc(1, sizeof *p);
	int64_t from = arm_now_ns();
	const char *broken = ieee_broken();

	p->t = t;
	p->w.w.in_fd = p->w.w.rw_fd = -1;
	selftest_say(t, !broken, "ieee", "floating point of this process", broken ? broken : "IEEE 754");
	int rc = open_all(p, e) < 0 || specimens(p, e) < 0 || stale(p, e) < 0 ||
		 selftest_inputs(p, e) < 0 || selftest_slips(p, e) < 0 ? -1 : 0;
	snprintf(t->isolation, sizeof t->isolation, "%s", p->proof.isolation);
	close_all(p);
	free(p);
	t->seconds = (double)(arm_now_ns() - from) * 1e-9;
	return rc;
}

/* ---- the record ---- */

static int put_tools(const char *bin, struct jsonw *w, struct err *e)
{
	static const char *const NAMES[] = {"bench", "box", "checker", "child", "judge", "selftest", "tune",
					    "unittest", "worker"};
	char path[PATH_MAX], sha[HASH_HEX];

	jw_obj(w, "tools");
	for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
		snprintf(path, sizeof path, "%.3900s/%s", bin, NAMES[i]);
		if (!file_exists(path))
			continue;
		if (tool_hash(path, sha, e) < 0)
			return -1;
		jw_str(w, NAMES[i], sha);
	}
	jw_end(w);
	return 0;
}

int selftest_write(const struct selftest *t, const char *bin, struct jsonw *w, struct err *e)
{
	char now[32];

	verdict_now(now);
	jw_obj(w, NULL);
	jw_str(w, "schema", "touchstone/selftest/1");
	jw_str(w, "t", now);
	jw_str(w, "device", t->device);
	jw_str(w, "verdict", t->failed || !t->tried ? "fail" : "pass");
	jw_int(w, "specimens", t->tried);
	jw_int(w, "failed", t->failed);
	jw_str(w, "words", t->words);
	jw_num(w, "seconds", t->seconds);
	jw_str(w, "isolation", t->isolation);
	jw_obj(w, "rules");
	for (int i = 0; i < t->n; i++)
		jw_int(w, t->rule[i].name, t->rule[i].failed ? -t->rule[i].failed : t->rule[i].tried);
	jw_end(w);
	if (put_tools(bin, w, e) < 0)
		return -1;
	jw_end(w);
	return 0;
}
