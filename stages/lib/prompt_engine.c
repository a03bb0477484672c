/*
 * prompt_engine.c - see prompt_engine.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "prompt_engine.h"

#include "defence.h"
#include "engine_about.h"
#include "engine_tunables.h"
#include "facts.h"
#include "file.h"
#include "gpu.h"
#include "json.h"
#include "lexer.h"
#include "prompt.h"
#include "spawn.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_SHOWN = 256 << 10 };

/* ---- sources ---- */

static size_t line_at(const struct buf *t, size_t at)
{
	const char *nl = at < t->len ? memchr(buf_str(t) + at, '\n', t->len - at) : NULL;
	return nl ? (size_t)(nl - buf_str(t)) - at : t->len - at;
}

static int is_mark(const char *line, size_t n, const char *mark)
{
	while (n && (*line == ' ' || *line == '\t'))
		line++, n--;
	const size_t k = strlen(mark);
	return n >= k && memcmp(line, mark, k) == 0;
}

/* What is stripped of the block of tunables is put back: it holds integers and names alone (engine_tunables.h). */
static void keep_tunables(const struct buf *text, struct buf *stripped)
{
	static const char BEGIN[] = "// tunables:begin", END[] = "// tunables:end";
	struct engine_tunables t;
	struct buf out = BUF_INIT;
	size_t a = 0, b = 0;
	int inside = 0;
	if (engine_tunables_parse(buf_str(text), text->len, &t, NULL) || !t.n)
		return;
	while (a < text->len && b < stripped->len) {
		const size_t n = line_at(text, a), m = line_at(stripped, b);
		const char *line = text->data + a;
		const int begin = is_mark(line, n, BEGIN), end = is_mark(line, n, END);
		if (begin || end)
			buf_adds(&out, begin ? BEGIN : END);
		else if (inside && m) /* code, not what a comment hides */
			buf_add(&out, line, n);
		else
			buf_add(&out, stripped->data + b, m);
		buf_addc(&out, '\n');
		inside = begin || (inside && !end);
		a += n + 1;
		b += m + 1;
	}
	buf_free(stripped);
	*stripped = out;
}

/* Runs of empty lines become one. */
static void squeeze(const struct buf *t, struct buf *out)
{
	for (size_t i = 0; i < t->len; i++) {
		const size_t n = out->len;
		if (t->data[i] != '\n' || (n && out->data[n - 1] != '\n') || (n > 1 && out->data[n - 2] != '\n'))
			buf_addc(out, t->data[i]);
	}
}

void prompt_engine_files(const struct engine_files *f, const char *salt, int lines, struct buf *out)
{
	for (int i = 0; i < f->n; i++) {
		const struct engine_file *x = &f->file[i];
		struct buf t = BUF_INIT, shown = BUF_INIT;
		/* Comments could talk to the reader of the prompt; they go (threats.md J01, J02). */
		if (DEFENCE("prompt.strip"))
			lex_strip_comments(buf_str(&x->text), x->text.len, &t);
		else
			buf_add(&t, buf_str(&x->text), x->text.len);
		if (strcmp(x->name, engine_main(engine_files_cuda(f))) == 0 && DEFENCE("prompt.strip"))
			keep_tunables(&x->text, &t);
		if (lines)
			buf_add(&shown, buf_str(&t), t.len);
		else
			squeeze(&t, &shown);
		if (shown.len > MAX_SHOWN) {
			shown.len = MAX_SHOWN;
			buf_adds(&shown, "\n(cut here)\n");
		}
		if (i)
			buf_addc(out, '\n');
		prompt_fence(out, x->name, buf_str(&shown), shown.len, salt);
		buf_free(&t);
		buf_free(&shown);
	}
}

/* ---- model, device, protocol ---- */

void prompt_engine_model(const struct stage *s, const struct engine_spec *k, struct buf *out)
{
	const size_t before = out->len;
	engine_about_tell_model(&s->run, out);
	if (out->len == before)
		buf_addf(out, "The checkpoint is a Qwen3 of shape %s.\n", k->shape);
}

int prompt_engine_device(const struct stage *s, const struct proposal *p, struct buf *out, struct err *e)
{
	struct facts f;
	struct gpu g;
	char toolkit[32];
	if (!p->engine->cuda) {
		engine_about_tell_host(&s->run, out);
		return 0;
	}
	if (device_class_of(s->trial.device) != DEVICE_CUDA) {
		buf_addf(out, "Device: %s.\n", s->trial.device);
		return 0;
	}
	if (facts_of_run(&s->run, s->trial.device, &f, e) || gpu_of_run_toolkit(&s->run, &g, toolkit, e))
		return -1;
	const struct worker_ceilings *c = &g.ceilings;
	buf_addf(out, "Device: %s, %s, %.0f GiB, %lld SMs; %lld threads and %lld bytes of shared memory a block at most, %lld registers "
		 "an SM, %lld bytes of L2. CUDA toolkit %s.\n", f.name, g.arch, (double)g.memory_bytes / (1 << 30),
		 (long long)f.sm_count, (long long)f.max_threads, (long long)f.max_shared, (long long)f.max_registers_sm,
		 (long long)f.l2_bytes, *toolkit ? toolkit : "of this machine");
	if (c->copy_gbs > 0)
		buf_addf(out, "Measured on it: copy %.0f GB/s (bytes read plus written), read %.0f, write %.0f; fp32 %.1f TFLOP/s, tensor "
			 "cores bf16 %.0f.\n", c->copy_gbs, c->read_gbs, c->write_gbs, c->fp32_tflops, c->bf16_tflops);
	return 0;
}

int prompt_engine_protocol(struct proposal *p, struct buf *out, struct err *e)
{
	static const char TAIL[] = "../../stages/engine/engine_protocol.h"; /* as the compiler is given it (engine_build.c) */
	char path[PATH_MAX + sizeof TAIL];
	struct buf t = BUF_INIT;
	if (spawn_tool("bench", path, PATH_MAX, e))
		return -1;
	memcpy(strrchr(path, '/') + 1, TAIL, sizeof TAIL);
	int rc = file_read(path, 64 << 10, &t, e) || prompt_hashed(p, "engine_protocol.h", &t, e) ? -1 : 0;
	if (rc == 0)
		buf_addf(out, "```c\n%s```\n", buf_str(&t));
	buf_free(&t);
	return rc;
}

/* ---- figures ---- */

static int is_public(const struct engine_spec *k, const char *name)
{
	for (int i = 0; i < k->npublic; i++)
		if (strcmp(k->public[i].name, name) == 0)
			return 1;
	return 0;
}

static void put_ratio(const cJSON *w, const char *other, const char *words, struct buf *out)
{
	const double own = json_get_num(json_get(w, "candidate"), "total_s", NAN), his = json_get_num(json_get(w, other), "total_s", NAN);
	if (own > 0 && his > 0)
		buf_addf(out, ", %.3fx as fast as the %s", his / own, words);
}

/* How near to what the GPU needs at best; nothing where no ceilings are known. */
static void put_floor(const cJSON *own, struct buf *out)
{
	const double all = json_get_num(own, "of_floor", NAN), ttft = json_get_num(own, "ttft_of_floor", NAN),
		     tpot = json_get_num(own, "tpot_of_floor", NAN);
	if (isnan(all))
		return;
	buf_addf(out, ", %.0f %% of the floor", 100 * all);
	if (!isnan(ttft) && !isnan(tpot))
		buf_addf(out, " (first token %.0f %%, further ones %.0f %%)", 100 * ttft, 100 * tpot);
}

static void one_workload(const cJSON *w, const char *lead, struct buf *out)
{
	const cJSON *own = json_get(w, "candidate");
	const double batch = json_get_num(w, "batch", 0), steps = json_get_num(w, "steps", 0), total = json_get_num(own, "total_s", NAN),
		     tpot = json_get_num(own, "tpot_s", NAN);
	if (!(total > 0))
		return;
	buf_addf(out, "%s%s (batch %.0f, prompt %.0f, steps %.0f): first token %.3f ms", lead, json_get_str(w, "name", "?"), batch,
		 json_get_num(w, "prompt", 0), steps, 1e3 * json_get_num(own, "ttft_s", NAN));
	if (!isnan(tpot))
		buf_addf(out, ", then %.4f ms a token", 1e3 * tpot);
	buf_addf(out, ", %.1f tok/s", batch * steps / total);
	put_floor(own, out);
	put_ratio(w, "champion", "champion then", out);
	put_ratio(w, "native", "baseline", out);
	buf_addc(out, '\n');
}

void prompt_engine_workloads(const struct engine_spec *k, const cJSON *engine, const char *lead, struct buf *out)
{
	const cJSON *w;
	cJSON_ArrayForEach(w, json_get(engine, "workloads"))
		if (is_public(k, json_get_str(w, "name", "")))
			one_workload(w, lead, out);
}

/* Of confirm, the fresher and longer one, else of bench. 0 where neither has any. */
static int figures(const struct engine_spec *k, const char *trial, const char *lead, struct buf *out)
{
	static const enum step from[] = {STEP_CONFIRM, STEP_BENCH};
	const size_t before = out->len;
	for (int i = 0; i < 2 && out->len == before; i++) {
		struct verdict_in in;
		if (verdict_read(trial, from[i], &in, NULL))
			continue;
		prompt_engine_workloads(k, json_get(in.data, "engine"), lead, out);
		verdict_in_free(&in);
	}
	return out->len > before;
}

void prompt_engine_figures(const struct engine_spec *k, const char *trial, struct buf *out)
{
	figures(k, trial, "  ", out);
}

int prompt_engine_measured(struct stage *s, const struct proposal *p, struct buf *out, struct err *e)
{
	const cJSON *after;
	if (stage_after(s, &after, e))
		return -1;
	if (!*p->parent.trial) {
		buf_addf(out, "This is the %s of the problem%s\n", p->parent.from,
			 json_get_str(json_get(after, "champion"), "trial", NULL) ? "." : "; no candidate has been kept yet.");
		return 0;
	}
	const double best = json_get_num(after, "best_ratio", NAN);
	const int champion = strcmp(p->parent.from, "champion") == 0;
	buf_addf(out, "%s: trial %s", champion ? "Champion" : "An earlier champion", p->parent.trial);
	if (champion && !isnan(best))
		buf_addf(out, ", %.2fx of the baseline (geometric mean of tokens a second)", best);
	buf_adds(out, ". Medians of its batches:\n");
	if (!figures(p->engine, p->parent.trial, "- ", out))
		buf_adds(out, "- not measured\n");
	return 0;
}

void prompt_engine_message(const char *message, struct buf *out)
{
	static const char *const hidden[] = {"workload proxy_", "workload held_out_", "proxy_", "held_out_"};
	for (const char *p = message; *p;) {
		size_t n = 0;
		for (size_t i = 0; i < sizeof hidden / sizeof *hidden && !n; i++)
			if (strncmp(p, hidden[i], strlen(hidden[i])) == 0 && p[strlen(hidden[i])] >= '0' && p[strlen(hidden[i])] <= '9')
				n = strlen(hidden[i]);
		if (!n) {
			buf_addc(out, *p++);
			continue;
		}
		p += n;
		p += strspn(p, "0123456789");
		buf_adds(out, "a workload that is not shown");
	}
}
