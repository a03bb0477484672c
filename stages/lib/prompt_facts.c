/*
 * prompt_facts.c - the parts of a prompt that come from the spec and the record (prompt.h).
 *
 * Reads the pinned spec, the champion's bench verdict, and the promote verdicts of the trials that
 * the `after` block lists. Never shows held-out workloads, keys, expected values.
 *
 * SPDX-License-Identifier: MIT
 */
#include "prompt.h"

#include "clusters.h"
#include "defence.h"
#include "file.h"
#include "gpu.h"
#include "json.h"
#include "ncu.h"
#include "jsonw.h"
#include "lexer.h"
#include "prompt_engine.h"
#include "reason.h"
#include "roofline.h"
#include "utf8.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_KERNEL = 96 << 10, MAX_REASON = 600, MAX_RECENT = 15, MAX_CODES = 24, MAX_CLUSTERS = 5 };

static void code_block(struct buf *out, const char *lang, const char *text, size_t len)
{
	buf_addf(out, "```%s\n", lang);
	buf_add(out, text, len);
	if (len && text[len - 1] != '\n')
		buf_addc(out, '\n');
	buf_adds(out, "```\n");
}

/* JSON for a reader who pays by the token: what fits on a line stays on it. */
static void put_json(struct buf *out, const cJSON *j, int indent)
{
	struct jsonw w = {0};
	const cJSON *c;

	jw_item(&w, NULL, j);
	if (w.out.len + 2 * (size_t)indent <= 100 || !(cJSON_IsArray(j) || cJSON_IsObject(j))) {
		buf_add(out, buf_str(&w.out), w.out.len);
		jw_free(&w);
		return;
	}
	jw_free(&w);
	buf_addc(out, cJSON_IsArray(j) ? '[' : '{');
	cJSON_ArrayForEach(c, j) {
		buf_addf(out, "%s\n%*s", c == j->child ? "" : ",", 2 * (indent + 1), "");
		if (c->string)
			buf_addf(out, "\"%s\": ", c->string);
		put_json(out, c, indent + 1);
	}
	buf_addf(out, "\n%*s%c", 2 * indent, "", cJSON_IsArray(j) ? ']' : '}');
}

/* Source without comments, and without the empty lines that those leave behind. */
static void put_source(struct buf *out, const char *text, size_t len)
{
	struct buf t = BUF_INIT;

	/* Comments could talk to the reader of the next prompt; they go (threats.md J01, J02). */
	if (DEFENCE("prompt.strip"))
		lex_strip_comments(text, len, &t);
	else
		buf_add(&t, text, len);
	for (size_t i = 0; i < t.len && out->len < MAX_KERNEL; i++)
		if (t.data[i] != '\n' || (out->len && out->data[out->len - 1] != '\n') ||
		    (out->len > 1 && out->data[out->len - 2] != '\n'))
			buf_addc(out, t.data[i]);
	if (out->len == MAX_KERNEL)
		buf_adds(out, "\n(cut here)\n");
	buf_free(&t);
}

/* spec.json without what the proposer must not know: held-out ranges, proxies and odd sizes. */
int prompt_spec(struct stage *s, struct buf *out, struct err *e)
{
	struct buf t = BUF_INIT, text = BUF_INIT;
	cJSON *j = NULL, *wl;

	if (stage_spec(s, NULL, "spec.json", 1 << 20, &t, e) ||
	    !(j = json_parse(t.data, t.len, &JSON_OURS, "spec.json", e))) {
		buf_free(&t);
		return -1;
	}
	wl = json_get(j, "workloads");
	if (wl) {
		static const char *const hidden[] = {"held_out", "tiny", "proxy", "odd"};
		for (size_t i = 0; i < sizeof hidden / sizeof *hidden; i++)
			cJSON_DeleteItemFromObjectCaseSensitive(wl, hidden[i]);
	}
	put_json(&text, j, 0);
	code_block(out, "json", text.data, text.len);
	cJSON_Delete(j);
	buf_free(&text);
	buf_free(&t);
	return 0;
}

int prompt_champion(struct stage *s, const struct proposal *p, const char *salt, struct buf *out, struct err *e)
{
	struct buf src = BUF_INIT, plan = BUF_INIT;
	struct plan *parsed = NULL;
	struct jsonw w = {0};
	cJSON *j;

	(void)s;
	put_source(&src, buf_str(&p->parent.kernel), p->parent.kernel.len);
	if (plan_parse(buf_str(&p->parent.plan), p->parent.plan.len, "plan.json of the parent", &parsed, e)) {
		buf_free(&src);
		return -1;
	}
	plan_write(parsed, &w, NULL);
	j = json_parse(buf_str(&w.out), w.out.len, &JSON_OURS, "plan.json of the parent", e);
	put_json(&plan, j, 0);
	cJSON_Delete(j);
	jw_free(&w);
	prompt_fence(out, "kernel.cu", buf_str(&src), src.len, salt);
	buf_addc(out, '\n');
	prompt_fence(out, "plan.json", buf_str(&plan), plan.len, salt);
	plan_free(parsed);
	buf_free(&plan);
	buf_free(&src);
	return 0;
}

/* Mean of a member over the sessions that count, of workload `name`; NAN when none has it. */
static double over_sessions(const cJSON *sessions, const char *name, const char *key)
{
	const cJSON *one, *wl;
	double sum = 0, v;
	int n = 0;

	cJSON_ArrayForEach(one, sessions) {
		if (cJSON_IsTrue(json_get(one, "void")))
			continue;
		cJSON_ArrayForEach(wl, json_get(one, "workloads")) {
			v = json_get_num(wl, key, NAN);
			if (strcmp(json_get_str(wl, "name", ""), name) || isnan(v))
				continue;
			sum += v;
			n++;
		}
	}
	return n ? sum / n : NAN;
}

/* Bench's profile of the candidate on workload `name` (bench.json, data.roofline); NULL off a GPU. */
static const cJSON *profile_of(const cJSON *data, const char *name)
{
	const cJSON *one;

	cJSON_ArrayForEach(one, json_get(data, "roofline"))
		if (!strcmp(json_get_str(one, "name", ""), name))
			return one;
	return NULL;
}

/* How far from what this GPU was measured to do, and what each launch takes of it. */
static void against_roof(const struct proposal *p, const struct axes *a, const struct worker_ceilings *c,
			 const cJSON *profile, double ns, struct buf *out)
{
	const cJSON *l;
	struct roofline r;

	roofline_of(p->spec, a, c, ROOFLINE_FAIR, &r);
	if (r.bound != ROOFLINE_NONE)
		buf_addf(out, "; %.0f %% of the roofline (%s bound, %.2f us at best)", 100 * r.floor_ns / ns,
			 roofline_bound_name(r.bound), r.floor_ns / 1000);
	cJSON_ArrayForEach(l, json_get(profile, "launches")) {
		const char *entry = json_get_str(l, "entry", "");
		buf_adds(out, "\n  - ");
		utf8_line(out, entry, strlen(entry), 64);
		buf_addf(out, ": %.0f blocks of %.0f threads, %.0f registers a thread, %.0f bytes shared a block, %.0f "
			 "spilled; %.0f blocks an SM, occupancy %.0f %%", json_get_num(l, "blocks", NAN),
			 json_get_num(l, "threads", NAN), json_get_num(l, "registers", NAN),
			 json_get_num(l, "shared_bytes", NAN), json_get_num(l, "spill_bytes", NAN),
			 json_get_num(l, "blocks_per_sm", NAN), 100 * json_get_num(l, "occupancy", NAN));
	}
}

/* `ceilings` is NULL where there are none: then the axes are those of the emulated device. */
static void one_workload(const struct proposal *p, const struct spec_workload *k, const cJSON *data,
			 const struct worker_ceilings *ceilings, struct buf *out)
{
	const struct axes *a = ceilings ? &k->gpu : &k->emu;
	const cJSON *sessions = json_get(json_get(data, "decide"), "sessions");
	const cJSON *profile = ceilings ? profile_of(data, k->name) : NULL;
	/* The profile's time is that of one run: a window may hold several. */
	double ns = profile ? 1000 * json_get_num(profile, "time_us", NAN)
			    : over_sessions(sessions, k->name, "candidate_mean");
	double theta = over_sessions(sessions, k->name, "theta");
	int64_t bytes, flops;

	buf_addf(out, "- %s (", k->name);
	for (int i = 0, n = 0; i < p->spec->naxes; i++)
		if (!p->spec->axis[i].is_const)
			buf_addf(out, "%s%s=%lld", n++ ? ", " : "", p->spec->axis[i].name, (long long)a->v[i]);
	buf_adds(out, "): ");
	if (isnan(ns) || ns <= 0) {
		buf_adds(out, "not measured\n");
		return;
	}
	buf_addf(out, "%.3f us", ns / 1000);
	if (!spec_cost(p->spec, a, &bytes, &flops, NULL)) {
		if (bytes > 0)
			buf_addf(out, ", %.2f GB/s of necessary traffic", (double)bytes / ns);
		if (flops > 0)
			buf_addf(out, ", %.2f GFLOP/s", (double)flops / ns);
	}
	if (!isnan(theta))
		buf_addf(out, ", %.3fx of the champion before it", exp(theta));
	if (ceilings)
		against_roof(p, a, ceilings, profile, ns, out);
	buf_addc(out, '\n');
}

/* `make profile` leaves it: no evidence, and not always there. */
static void profiled(const struct proposal *p, struct buf *out)
{
	char path[TRIAL_PATH];
	const cJSON *k;

	trial_path(path, p->parent.trial, "profile.json");
	cJSON *j = file_exists(path) ? json_read(path, &JSON_OURS, NULL, NULL) : NULL;
	if (j && !cJSON_IsTrue(json_get(j, "available"))) {
		const char *why = json_get_str(j, "why", "");
		buf_adds(out, "- profile unavailable: ");
		utf8_line(out, why, strlen(why), 200);
		buf_addc(out, '\n');
	}
	cJSON_ArrayForEach(k, json_get(j, "workloads")) {
		const char *name = json_get_str(k, "name", "?");
		buf_adds(out, "- profile of ");
		utf8_line(out, name, strlen(name), 64);
		buf_addc(out, '\n');
		ncu_tell(json_get(k, "launches"), out);
	}
	cJSON_Delete(j);
}

/* Times of the champion as the trial that made it measured them. Public workloads only. */
int prompt_measured(struct stage *s, const struct proposal *p, struct buf *out, struct err *e)
{
	const cJSON *after;
	struct verdict_in in;
	struct gpu g;
	double best;
	int on_gpu = device_class_of(s->trial.device) == DEVICE_CUDA;

	if (!*p->parent.trial) {
		buf_addf(out, "This is the %s of the problem; no candidate has been kept yet.\n",
			 p->parent.from);
		return 0;
	}
	if (on_gpu && gpu_of_run(&s->run, &g, e))
		return -1;
	if (stage_after(s, &after, e) || verdict_read(p->parent.trial, STEP_BENCH, &in, e))
		return -1;
	best = json_get_num(after, "best_ratio", NAN);
	int champion = !strcmp(p->parent.from, "champion");
	buf_addf(out, "%s: trial %s", champion ? "Champion" : "An earlier champion", p->parent.trial);
	if (champion && !isnan(best))
		buf_addf(out, ", %.2fx of the baseline", best);
	buf_addf(out, ". Times on device %s%s:\n", s->trial.device,
		 s->v.emulated ? " (emulated on a CPU: no GPU speed)"
		 : s->v.simulated ? " (simulated: no real speed)" : "");
	for (int i = 0; i < p->spec->npublic; i++)
		one_workload(p, &p->spec->public[i], in.data, on_gpu ? &g.ceilings : NULL, out);
	if (on_gpu)
		profiled(p, out);
	verdict_in_free(&in);
	return 0;
}

/* A message without the places of workloads that are not shown. */
static void put_message(const struct verdict_in *in, size_t max, struct buf *out)
{
	struct buf t = BUF_INIT;

	prompt_engine_message(in->message, &t);
	utf8_line(out, buf_str(&t), t.len, max);
	buf_free(&t);
}

static void one_trial(const struct proposal *p, const struct verdict_in *in, const char *id, struct buf *out)
{
	const cJSON *d = in->data;
	const char *item = json_get_str(d, "item", NULL), *why = json_get_str(d, "hypothesis", NULL);
	double ratio = json_get_num(d, "ratio", NAN);

	buf_addf(out, "trial %s: %s", id, verdict_kind_name(in->kind));
	if (in->kind != V_PASS)
		buf_addf(out, " (%s)", in->code);
	if (!isnan(ratio))
		buf_addf(out, ", measured %.3fx of the champion", ratio);
	buf_addc(out, '\n');
	if (item) {
		buf_adds(out, "  change: ");
		utf8_line(out, item, strlen(item), 120);
		buf_addc(out, '\n');
	}
	if (why) {
		buf_adds(out, "  hypothesis: ");
		utf8_line(out, why, strlen(why), 400);
		buf_addc(out, '\n');
	}
	buf_adds(out, "  result: ");
	put_message(in, MAX_REASON, out);
	buf_addc(out, '\n');
	if (p->engine)
		prompt_engine_figures(p->engine, id, out);
}

int prompt_recent(struct stage *s, const struct proposal *p, const char *salt, int keep, struct buf *out,
		  struct err *e)
{
	const cJSON *after, *id;
	struct buf t = BUF_INIT;
	int n = 0;

	if (stage_after(s, &after, e))
		return -1;
	cJSON_ArrayForEach(id, json_get(after, "recent")) {
		struct verdict_in in;
		if (n++ == keep || n > MAX_RECENT)
			break;
		if (!cJSON_IsString(id) || !trial_id_ok(id->valuestring))
			continue;
		if (verdict_read(id->valuestring, STEP_PROMOTE, &in, e)) {
			buf_free(&t);
			return -1;
		}
		one_trial(p, &in, id->valuestring, &t);
		verdict_in_free(&in);
	}
	if (t.len) /* items and diagnostics repeat candidates' words */
		prompt_fence(out, "trials", t.data, t.len, salt);
	else if (keep)
		buf_adds(out, "None yet.\n");
	buf_free(&t);
	return 0;
}

struct tally {
	const char *code;
	int64_t n;
};

static int more_first(const void *a, const void *b)
{
	const struct tally *x = a, *y = b;

	return x->n != y->n ? (x->n < y->n ? 1 : -1) : strcmp(x->code, y->code);
}

/* How all closed trials ended, by reason; the recent ones are told one by one elsewhere. */
int prompt_digest(struct stage *s, struct buf *out, struct err *e)
{
	struct tally t[128];
	const cJSON *after, *r;
	int n = 0;

	if (stage_after(s, &after, e))
		return -1;
	cJSON_ArrayForEach(r, json_get(after, "reasons")) {
		int64_t v;
		if (n == 128 || json_is_int(r, &v) || v <= 0 || !reason_find(r->string))
			continue;
		t[n++] = (struct tally){r->string, v};
	}
	if (!n)
		return 0;
	qsort(t, (size_t)n, sizeof *t, more_first);
	buf_addf(out, "Of %lld trials so far:\n", (long long)json_get_num(after, "closed", 0));
	for (int i = 0; i < n && i < MAX_CODES; i++)
		buf_addf(out, "- %lld x %s: %s\n", (long long)t[i].n, t[i].code,
			 strcmp(t[i].code, "ok") ? reason_text(t[i].code) : "kept as champion");
	return 0;
}

static void add_cluster(struct clusters *k, const struct verdict_in *in)
{
	struct buf t = BUF_INIT;

	prompt_engine_message(in->message, &t);
	clusters_add(k, in->code, buf_str(&t));
	buf_free(&t);
}

/* What the newest failures have in common. Once is no pattern. */
int prompt_clusters(struct stage *s, const char *salt, struct buf *out, struct err *e)
{
	struct clusters k = {0};
	const cJSON *after, *id;
	struct buf t = BUF_INIT;
	int n = 0;

	if (stage_after(s, &after, e))
		return -1;
	cJSON_ArrayForEach(id, json_get(after, "recent")) {
		struct verdict_in in;
		if (!cJSON_IsString(id) || !trial_id_ok(id->valuestring))
			continue;
		if (n++ == PROMPT_CLUSTERED)
			break;
		if (verdict_read(id->valuestring, STEP_PROMOTE, &in, e))
			return -1;
		if (in.kind == V_REJECT || in.kind == V_INCONCLUSIVE)
			add_cluster(&k, &in);
		verdict_in_free(&in);
	}
	clusters_sort(&k);
	clusters_tell(&k, n < PROMPT_CLUSTERED ? n : PROMPT_CLUSTERED, 2, MAX_CLUSTERS, &t);
	if (t.len) {
		buf_adds(out, "What failed more than once of late:\n");
		prompt_fence(out, "failures", t.data, t.len, salt);
	}
	buf_free(&t);
	return 0;
}

static void about_gpu(const struct gpu *g, const char *toolkit, struct buf *out)
{
	const struct worker_ceilings *c = &g->ceilings;

	buf_addf(out, "A real GPU, %s, %.0f GiB. %lld threads, %lld blocks, %lld bytes of shared memory and %lld "
		 "registers an SM at most. ", g->arch, (double)g->memory_bytes / (1 << 30),
		 (long long)g->facts.max_threads_sm, (long long)g->facts.max_blocks_sm,
		 (long long)g->facts.max_shared_sm, (long long)g->facts.max_registers_sm);
	if (g->facts.max_cluster > 1)
		buf_addf(out, "Clusters of up to %lld blocks. ", (long long)g->facts.max_cluster);
	buf_addf(out, "Compiled by NVRTC %s for %s; inline PTX and tensor cores are there.\n",
		 *toolkit ? toolkit : "of this machine", g->arch);
	if (c->copy_gbs > 0)
		buf_addf(out, "Measured on it: copy %.0f GB/s (bytes read plus written), read %.0f, write %.0f; "
			 "fp32 %.1f TFLOP/s, tensor cores bf16 %.0f, fp16 %.0f.\n", c->copy_gbs, c->read_gbs,
			 c->write_gbs, c->fp32_tflops, c->bf16_tflops, c->fp16_tflops);
	buf_adds(out, "Each timed rep starts with a cold L2 and new data; all launches of the plan are inside the "
		 "window, and each launch costs time of its own.\n");
}

int prompt_device(const struct stage *s, struct buf *out, struct err *e)
{
	const char *device = s->trial.device;
	struct facts f;
	struct gpu g;
	char toolkit[32];

	if (facts_of_run(&s->run, device, &f, e))
		return -1;
	buf_addf(out, "Device: %s. %lld SMs, %lld threads and %lld bytes of shared memory a block at most, "
		 "warps of %lld, %lld bytes of L2.\n", f.name, (long long)f.sm_count,
		 (long long)f.max_threads, (long long)f.max_shared, (long long)f.warp_size,
		 (long long)f.l2_bytes);
	if (f.class == DEVICE_EMU)
		buf_adds(out, "Kernels are compiled by the host's C++ compiler and run on a CPU, threads and all: "
			 "no inline PTX, no tensor cores, no TMA. What counts here is less work, vectorisable "
			 "inner loops, locality and few barriers.\n");
	if (f.class == DEVICE_SIM)
		buf_adds(out, "Times are synthetic: a function of the plan.\n");
	if (f.class != DEVICE_CUDA)
		return 0;
	if (gpu_of_run_toolkit(&s->run, &g, toolkit, e))
		return -1;
	about_gpu(&g, toolkit, out);
	return 0;
}
