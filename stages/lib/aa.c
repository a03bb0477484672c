/*
 * aa.c - see aa.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "aa.h"

#include "file.h"
#include "json.h"
#include "sim.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Inputs of A/A sessions come from reps that no bench uses. */
#define AA_REPS (1ull << 40)

static void first_line(const char *path, char out[128])
{
	FILE *f = fopen(path, "re");
	out[0] = '\0';
	if (!f)
		return;
	if (!fgets(out, 128, f))
		out[0] = '\0';
	out[strcspn(out, "\n")] = '\0';
	fclose(f);
}

/* One measurement holds for one boot of one machine, one spec and one set of rules. */
static void place(struct rig *r, struct aa *a)
{
	char boot[128], hex[HASH_HEX], name[64];
	struct buf text = BUF_INIT;
	first_line("/proc/sys/kernel/random/boot_id", boot);
	buf_addf(&text, "aa:%s:%s:%s:%s", STATS_RULE, boot, r->s->run.spec_sha256,
		 r->s->trial.device);
	if (r->class == DEVICE_CUDA)
		buf_addf(&text, ":%s:%s", r->gpu.uuid, r->gpu.driver_version);
	hash_hex(text.data, text.len, hex);
	buf_free(&text);
	snprintf(name, sizeof name, "aa-%.8s.json", hex);
	run_path(a->file, r->s->run.name, name);
}

static int read_back(struct aa *a, struct err *e)
{
	cJSON *j = json_read(a->file, &JSON_OURS, a->sha, e);
	int64_t n = 0;
	if (!j)
		return -1;
	int rc = json_num(j, "s0", &a->s0, a->file, e) != 0 ||
		 json_num(j, "mean", &a->mean, a->file, e) != 0 ||
		 json_int(j, "sessions", &n, a->file, e) != 0;
	a->sessions = (int)n;
	a->ok = 1;
	cJSON_Delete(j);
	if (rc == 0 && !(a->s0 > 0))
		return err_set(e, EX_BADINPUT, "%s: key 's0' must be positive", a->file);
	return rc ? -1 : 0;
}

/* Standard error of a session's weighted theta, from its blocks. */
static double within(const struct contest *t, const struct session_result *s)
{
	double sum = 0, weights = 0;
	for (int i = 0; i < t->workloads; i++) {
		sum += pow(t->weight[i] * s->w[i].se, 2);
		weights += t->weight[i];
	}
	return sqrt(sum) / weights;
}

/* Four sessions know their sd only to 40 %; what the blocks say is a floor that rests on many
 * more numbers. Noise is no reason to refuse: the test knows it from the sessions themselves, and
 * only sees less. A label that wins against itself is one. */
static void summarise(const struct contest *t, struct aa *a)
{
	double se[CONTEST_SESSIONS];
	for (int i = 0; i < t->n; i++)
		se[i] = within(t, &t->session[i]);
	a->sessions = t->k;
	a->mean = stats_mean(t->theta, (size_t)t->k);
	a->s0 = fmax(stats_sd(t->theta, (size_t)t->k), stats_median(se, (size_t)t->n));
	a->s0 = fmax(a->s0, a->floor);
	a->ok = fabs(a->mean) <= AA_SIGMA * a->s0 / sqrt(t->k) + a->slack;
	if (!a->ok)
		snprintf(a->why, sizeof a->why, "champion against itself reads %+.2f %% in %d sessions",
			 100 * a->mean, t->k);
}

static int keep(struct rig *r, const struct contest *t, struct raw *raw, struct aa *a, struct err *e)
{
	struct jsonw w = {.pretty = 1};
	char path[TRIAL_PATH], hex[HASH_HEX], boot[128];
	size_t len;
	const void *bytes = raw_bytes(raw, &len);
	snprintf(path, sizeof path, "%.*s.raw", (int)(strlen(a->file) - 5), a->file);
	if (file_write(path, bytes, len, 0644, e) != 0)
		return -1;
	hash_hex(bytes, len, hex);
	first_line("/proc/sys/kernel/random/boot_id", boot);
	jw_obj(&w, NULL);
	jw_str(&w, "schema", "touchstone/aa/1");
	jw_str(&w, "device", r->s->trial.device);
	if (r->class == DEVICE_CUDA) {
		jw_str(&w, "gpu", r->gpu.uuid);
		jw_str(&w, "driver", r->gpu.driver_version);
	}
	jw_str(&w, "boot", boot);
	jw_str(&w, "champion", r->arm[RAW_CHAMPION].candidate);
	jw_str(&w, "measured_by", r->s->id);
	jw_num(&w, "s0", a->s0);
	jw_num(&w, "mean", a->mean);
	jw_int(&w, "sessions", a->sessions);
	jw_str(&w, "raw_sha256", hex);
	jw_obj(&w, "plan");
	contest_plan_write(t, &w);
	jw_end(&w);
	contest_write(t, &w, "contest");
	jw_end(&w);
	int rc = file_write(a->file, w.out.data, w.out.len, 0644, e);
	hash_hex(w.out.data, w.out.len, a->sha);
	jw_free(&w);
	return rc;
}

static int measure(struct rig *r, const struct session_class *c, struct aa *a, struct err *e)
{
	struct contest t;
	struct raw raw;
	contest_init(&t);
	raw_begin(&raw, 1000000000);
	t.c = c;
	t.solo_too = 0;
	t.whole = 1;
	t.size = r->size;
	t.ops = rig_ops(r);
	t.ctx = r;
	t.raw = &raw;
	snprintf(t.order_seed, sizeof t.order_seed, "%.32s", r->order_seed);
	for (int i = 0; i < r->spec->npublic; i++) {
		t.name[i] = r->workload[i].name;
		t.weight[i] = r->workload[i].weight;
	}
	t.workloads = r->spec->npublic;
	r->self = 1;
	r->rep_base = AA_REPS;
	/* A burst of other people's work may look like a bias: look again before refusing. */
	int rc = 0;
	for (int n = CONTEST_AA; rc == 0 && !a->ok && n <= 3 * CONTEST_AA; n += CONTEST_AA) {
		t.kind = V_NONE;
		rc = contest_fixed(&t, n, e);
		if (rc != 0 || t.kind != V_PASS)
			break;
		summarise(&t, a);
	}
	r->self = 0;
	r->rep_base = 0;
	r->t0 = 0;
	if (rc == 0 && t.kind != V_PASS) {
		a->ok = 0;
		snprintf(a->why, sizeof a->why, "champion against itself: %.100s", t.message);
	} else if (rc == 0 && a->ok) {
		rc = keep(r, &t, &raw, a, e);
	}
	raw_free(&raw);
	contest_free(&t);
	return rc;
}

/* The same boot, spec and rules were measured by an earlier run: its files are copied, so that
 * each run holds its own evidence. Failure is no trouble: then it is measured. */
static void borrow(struct rig *r, const struct aa *a)
{
	const char *name = strrchr(a->file, '/') + 1;
	long number = strtol(r->s->run.name + 1, NULL, 10);
	for (long n = number - 1; n > 0 && n >= number - AA_BACK; n--) {
		char run[32], from[TRIAL_PATH], raw[TRIAL_PATH], to[TRIAL_PATH];
		struct err e;
		snprintf(run, sizeof run, "r%04ld", n);
		run_path(from, run, name);
		if (!file_exists(from))
			continue;
		snprintf(raw, sizeof raw, "%.*s.raw", (int)(strlen(from) - 5), from);
		snprintf(to, sizeof to, "%.*s.raw", (int)(strlen(a->file) - 5), a->file);
		if (file_copy(raw, to, &e) == 0 && file_copy(from, a->file, &e) == 0)
			return;
	}
}

/* sim: block noise of 2 x 8 pairs and the session's own, both arms. */
static double sim_s0(const struct session_class *c)
{
	double pairs = 2.0 * c->block_quads * c->blocks_max;
	return M_SQRT2 * hypot(SIM_REP_SD / sqrt(pairs), SIM_SESSION_SD);
}

int aa_get(struct rig *r, struct aa *a, struct err *e)
{
	const struct session_class *c = rig_class(r);
	memset(a, 0, sizeof *a);
	a->floor = c->s0_floor;
	a->slack = r->class == DEVICE_CUDA ? AA_SLACK_GPU : AA_SLACK;
	if (r->class == DEVICE_SIM) {
		a->s0 = fmax(sim_s0(c), c->s0_floor);
		a->ok = 1;
		return 0;
	}
	place(r, a);
	if (!file_exists(a->file))
		borrow(r, a);
	if (file_exists(a->file))
		return read_back(a, e);
	return measure(r, c, a, e);
}

void aa_write(const struct aa *a, struct jsonw *w, const char *key)
{
	jw_obj(w, key);
	jw_str(w, "file", a->file[0] ? a->file : NULL);
	jw_str(w, "sha256", a->sha[0] ? a->sha : NULL);
	jw_num(w, "s0", a->s0);
	jw_num(w, "mean", a->mean);
	jw_int(w, "sessions", a->sessions);
	jw_bool(w, "ok", a->ok);
	jw_str(w, "why", a->ok ? NULL : a->why);
	jw_end(w);
}
