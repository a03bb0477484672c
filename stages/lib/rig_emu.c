/*
 * rig_emu.c - reps of the emulated device: prepare, flush, run under our clock, verify. See rig.h.
 *
 * Reads cache sizes from sysfs. The order of a rep is fixed: inputs are written, then caches are
 * flushed by reading (a flush by writing would leave dirty lines to be paid by the timed run).
 * Nothing is pinned to a CPU: with five other processes on two cores that made A/A no quieter.
 *
 * SPDX-License-Identifier: MIT
 */
#include "rig.h"

#include "defence.h"
#include "facts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
	FLUSH_LEAST = 4 << 20,
	FLUSH_MOST = 12 << 20, /* more costs more than the reps, and an emulated kernel reads KBs */
};

/* Work that goes on after the reply: measured idle children stay below 0.1 ms a rep, read by a
 * clock of the kernel's own; both bounds must be passed. */
#define LATE_SHARE 0.05
#define LATE_NS 2000000

static int64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static long read_number(const char *fmt, int index)
{
	char path[128], text[64] = "";
	snprintf(path, sizeof path, fmt, index);
	FILE *f = fopen(path, "re");
	if (!f)
		return 0;
	if (!fgets(text, sizeof text, f))
		text[0] = '\0';
	fclose(f);
	char *end;
	long v = strtol(text, &end, 10);
	return *end == 'K' ? v * 1024 : *end == 'M' ? v * 1024 * 1024 : v;
}

/* CPUs in a list such as "0-3,8": who shares the cache. */
static long count_list(int index)
{
	char path[128], text[256] = "";
	snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/shared_cpu_list",
		 index);
	FILE *f = fopen(path, "re");
	if (!f)
		return 1;
	if (!fgets(text, sizeof text, f))
		text[0] = '\0';
	fclose(f);
	long n = 0;
	for (char *p = text; *p >= '0' && *p <= '9';) {
		long a = strtol(p, &p, 10), b = a;
		if (*p == '-')
			b = strtol(p + 1, &p, 10);
		n += b - a + 1;
		p += *p == ',';
	}
	return n > 0 ? n : 1;
}

size_t rig_flush_bytes(void)
{
	size_t bytes = 0;
	for (int i = 0; i < 8; i++) {
		long level = read_number("/sys/devices/system/cpu/cpu0/cache/index%d/level", i);
		long size = read_number("/sys/devices/system/cpu/cpu0/cache/index%d/size", i);
		if (level == 2)
			bytes += 2 * (size_t)size;
		if (level == 3)
			bytes += (size_t)(size / count_list(i));
	}
	if (bytes < FLUSH_LEAST)
		return FLUSH_LEAST;
	return bytes > FLUSH_MOST ? FLUSH_MOST : bytes;
}

static void flush_caches(struct rig *r)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < r->flush_bytes; i += 64)
		sum += r->flush[i];
	/* The store keeps the loop alive. */
	*(volatile uint8_t *)r->flush = (uint8_t)(sum & 1);
}

/* Largest need of any arm, workspace by workspace. */
static int workspaces(struct rig *r, const struct axes *axes, struct checker_open *o, struct err *e)
{
	struct facts facts;
	if (facts_find("emu", &facts, e) != 0)
		return -1;
	for (int i = 0; i < RAW_ARMS; i++) {
		struct launches l;
		if (!r->arm[i].present)
			continue;
		if (plan_resolve(r->arm[i].plan, r->spec, axes, &facts, 0, &l, e) != 0) {
			/* A candidate may be unable to run at a secret size: its fault, told when
			 * it is to start. */
			if (i != RAW_CANDIDATE || e->code != EX_BADINPUT)
				return -1;
			snprintf(r->refused, sizeof r->refused, "%.200s", e->text);
			continue;
		}
		for (int j = 0; j < l.nworkspaces && j < CHECKER_WS; j++) {
			uint64_t bytes = (uint64_t)l.workspace[j].bytes;
			o->ws[j] = bytes > o->ws[j] ? bytes : o->ws[j];
			o->n_ws = (uint32_t)j + 1 > o->n_ws ? (uint32_t)j + 1 : o->n_ws;
		}
		launches_free(&l);
	}
	return 0;
}

static int open_workload(void *ctx, int session, int workload, struct err *e)
{
	struct rig *r = ctx;
	const struct rig_workload *w = &r->workload[workload];
	struct checker_open o = {.mode = w->mode, .index = w->index, .emu = 1};
	(void)session;
	if (!r->flush) {
		r->flush_bytes = rig_flush_bytes();
		r->flush = xmalloc(r->flush_bytes);
		memset(r->flush, 1, r->flush_bytes); /* pages of its own, not the zero page */
	}
	r->refused[0] = '\0';
	memset(r->late, 0, sizeof r->late);
	memset(r->timed, 0, sizeof r->timed);
	if (workspaces(r, &w->axes, &o, e) != 0)
		return -1;
	return checker_open(r->checker, &o, &r->work, e);
}

static int stop(void *ctx, enum raw_arm arm, struct err *e)
{
	struct rig *r = ctx;
	(void)e;
	arm_close(r->live[arm]);
	r->live[arm] = NULL;
	return 0;
}

static int start(void *ctx, enum raw_arm arm, enum shot_outcome *outcome, char text[256],
		 struct err *e)
{
	struct rig *r = ctx;
	const struct rig_arm *a = rig_arm_of(r, arm);
	struct arm_opts o = {.device = "emu", .artefact = a->image, .artefact_sha = a->image_sha,
			     .spec = r->spec, .plan = a->plan, .axes = &r->work.axes,
			     .layout = &r->work.layout, .in_fd = r->work.in_fd,
			     .rw_fd = r->work.rw_fd};
	if (arm == RAW_CANDIDATE && r->refused[0]) {
		*outcome = SHOT_FAULT;
		memcpy(text, r->refused, sizeof r->refused);
		return 0;
	}
	o.timeout_ns = r->spec->limits.run_s * 1000000000;
	stop(r, arm, e);
	if (arm_open(&r->live[arm], &o, e) != 0)
		return -1;
	rig_layers(r, arm_isolation(r->live[arm]));
	return 0;
}

static void fail(struct shot *s, enum shot_outcome outcome, const char *text)
{
	s->outcome = outcome;
	s->check = RAW_UNCHECKED;
	snprintf(s->text, sizeof s->text, "%.*s", (int)strcspn(text, "\n"), text);
}

static void judge_status(struct shot *s, const struct arm_result *a)
{
	switch (a->status) {
	case ARM_OK:
		return;
	case ARM_TIMEOUT:
	case ARM_DEADLOCK:
		fail(s, SHOT_TIMEOUT, a->text[0] ? a->text : arm_status_name(a->status));
		return;
	case ARM_PROTOCOL:
		fail(s, SHOT_PROTOCOL, a->text[0] ? a->text : arm_status_name(a->status));
		return;
	case ARM_FAULT:
	case ARM_SANITIZER:
	case ARM_REFUSED:
	default:
		fail(s, SHOT_FAULT, a->text[0] ? a->text : arm_status_name(a->status));
	}
}

static void judge_late(struct rig *r, struct shot *s, const struct arm_result *a)
{
	r->timed[s->arm] += a->elapsed_ns;
	r->late[s->arm] += a->late_ns > 0 ? a->late_ns : 0;
	double most = LATE_NS + LATE_SHARE * (double)r->timed[s->arm];
	if ((double)r->late[s->arm] > most && DEFENCE("bench.late_work"))
		fail(s, SHOT_LATE, "its process went on working after the reply");
}

static int verify(struct rig *r, struct shot *s, struct err *e)
{
	struct compare_result *c = xcalloc(1, sizeof *c);
	int rc = checker_verify(r->checker, &r->work, c, e);
	if (rc == 0) {
		int pass = c->pass || !DEFENCE("bench.wrong_output");
		s->check = pass ? RAW_RIGHT : RAW_WRONG;
		if (!pass) {
			char text[128];
			snprintf(text, sizeof text, "%s%s%s", c->code, c->output[0] ? ": output " : "",
				 c->output);
			fail(s, SHOT_WRONG, text);
			s->check = RAW_WRONG;
		}
	}
	free(c);
	return rc;
}

static int shoot(void *ctx, struct shot *s, struct err *e)
{
	struct rig *r = ctx;
	double scalars[CHECKER_SCALARS];
	uint64_t rep = r->rep_base + s->rep;
	struct checker_prep p = {.rep = rep, .set = s->set, .perturb = 1, .regime = REGIME_SPEC,
				 .poison = (uint32_t)rep};
	struct arm_run_opts o = {.order = ARM_FORWARD, .scrub_seed = rep, .scalars = scalars};
	p.n_ws = arm_workspaces(r->live[s->arm], p.ws, CHECKER_WS);
	if (checker_prepare(r->checker, &r->work, &p, scalars, e) != 0)
		return -1;
	flush_caches(r);
	struct arm_result *a = xcalloc(1, sizeof *a);
	int64_t at = now_ns();
	int rc = arm_run(r->live[s->arm], &o, a, e);
	if (rc == 0) {
		r->t0 = r->t0 ? r->t0 : at;
		s->start = (uint64_t)(at - r->t0);
		s->stop = s->start + (uint64_t)(a->elapsed_ns > 0 ? a->elapsed_ns : 0);
		judge_status(s, a);
		if (s->outcome == SHOT_OK)
			judge_late(r, s, a);
		if (s->outcome == SHOT_OK)
			rc = verify(r, s, e);
		if (rc == 0 && s->outcome == SHOT_OK) {
			arm_wipe(r->live[s->arm], a);
			judge_status(s, a);
		}
	}
	free(a);
	return rc;
}

static void close_workload(void *ctx)
{
	struct rig *r = ctx;
	for (int i = 0; i < RAW_ARMS; i++)
		stop(r, (enum raw_arm)i, NULL);
	checker_close(r->checker, &r->work);
	r->work.in_fd = r->work.rw_fd = -1;
}

const struct session_ops RIG_EMU_OPS = {open_workload, start, stop, shoot, close_workload, NULL};
