/*
 * engine_about.c - see engine_about.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "engine_about.h"

#include "file.h"
#include "json.h"
#include "utf8.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

/* ---- the model ---- */

static const char *const NAMES[] = {"hidden", "layers", "heads", "kv_heads", "head_dim", "intermediate", "vocab",
				    "max_positions"};
enum { HIDDEN, LAYERS, HEADS, KV_HEADS, HEAD_DIM, INTERMEDIATE, VOCAB, POSITIONS, COUNT };

void engine_about_model(const struct qwen3_config *c, cJSON *settings)
{
	const int v[COUNT] = {c->hidden, c->layers, c->heads, c->kv_heads, c->head_dim, c->intermediate, c->vocab,
			      c->max_positions};
	cJSON *j = cJSON_AddObjectToObject(settings, "model_config");
	for (int i = 0; i < COUNT; i++)
		cJSON_AddNumberToObject(j, NAMES[i], v[i]);
	cJSON_AddBoolToObject(j, "tied", c->tied);
	cJSON_AddNumberToObject(j, "rope_theta", c->rope_theta);
	cJSON_AddNumberToObject(j, "eps", c->eps);
	cJSON_AddNumberToObject(j, "parameters", (double)qwen3_parameters(c));
	cJSON_AddNumberToObject(j, "step_bytes", (double)qwen3_step_bytes(c));
}

void engine_about_tell_model(const struct run *r, struct buf *out)
{
	const cJSON *j = json_get(r->settings, "model_config");
	long long v[COUNT];
	if (!j)
		return;
	for (int i = 0; i < COUNT; i++)
		v[i] = (long long)json_get_num(j, NAMES[i], 0);
	buf_addf(out, "The checkpoint: %lld layers, hidden %lld, %lld query heads and %lld key/value heads of %lld (query head h reads "
		 "key/value head h / %lld), intermediate %lld, vocabulary %lld, %lld positions; rope_theta %.10g, rms_norm_eps %.3g, "
		 "output head %s. %.0f parameters, bfloat16; one decode step must read %.0f bytes of weights.\n",
		 v[LAYERS], v[HIDDEN], v[HEADS], v[KV_HEADS], v[HEAD_DIM], v[KV_HEADS] ? v[HEADS] / v[KV_HEADS] : 0, v[INTERMEDIATE],
		 v[VOCAB], v[POSITIONS], json_get_num(j, "rope_theta", 0), json_get_num(j, "eps", 0),
		 cJSON_IsTrue(json_get(j, "tied")) ? "tied to the embedding" : "of its own (lm_head)", json_get_num(j, "parameters", 0),
		 json_get_num(j, "step_bytes", 0));
}

/* ---- the processor ---- */

/* The value of the first line `KEY : VALUE`; "" and 0. */
static const char *value_of(const char *text, const char *key, size_t *len)
{
	const size_t n = strlen(key);
	for (const char *p = text; p && *p; p = strchr(p, '\n'), p = p ? p + 1 : NULL) {
		if (strncmp(p, key, n) != 0)
			continue;
		const char *v = p + n + strspn(p + n, " \t");
		if (*v++ != ':')
			continue;
		v += strspn(v, " \t");
		*len = strcspn(v, "\n");
		return v;
	}
	*len = 0;
	return "";
}

void engine_about_cpuinfo(const char *text, struct buf *cpu, struct buf *features)
{
	static const char *const use[] = {"avx", "avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512vl", "avx512_vnni",
					  "avx512_bf16", "amx_bf16", "amx_tile", "asimd", "bf16", "sve"};
	size_t len;
	const char *v = value_of(text, "model name", &len);
	utf8_line(cpu, v, len, 80);
	v = value_of(text, "flags", &len);
	if (!len)
		v = value_of(text, "Features", &len);
	for (size_t i = 0; i < len;) {
		const size_t n = strcspn(v + i, " \n");
		for (size_t k = 0; k < sizeof use / sizeof *use; k++)
			if (strlen(use[k]) == n && memcmp(v + i, use[k], n) == 0)
				buf_addf(features, "%s%s", features->len ? " " : "", use[k]);
		i += n + 1;
	}
}

void engine_about_host(cJSON *settings)
{
	struct buf text = BUF_INIT, cpu = BUF_INIT, features = BUF_INIT;
	cpu_set_t set;
	cJSON *j = cJSON_AddObjectToObject(settings, "host");
	if (file_read("/proc/cpuinfo", 4 << 20, &text, NULL) == 0)
		engine_about_cpuinfo(buf_str(&text), &cpu, &features);
	cJSON_AddStringToObject(j, "cpu", buf_str(&cpu));
	cJSON_AddStringToObject(j, "features", buf_str(&features));
	if (sched_getaffinity(0, sizeof set, &set) == 0)
		cJSON_AddNumberToObject(j, "cpus", CPU_COUNT(&set));
	buf_free(&text);
	buf_free(&cpu);
	buf_free(&features);
}

void engine_about_tell_host(const struct run *r, struct buf *out)
{
	const cJSON *j = json_get(r->settings, "host");
	const char *cpu = json_get_str(j, "cpu", ""), *features = json_get_str(j, "features", "");
	const double cpus = json_get_num(j, "cpus", 0);
	buf_adds(out, "The engine runs on this processor");
	if (*cpu)
		buf_addf(out, ": %s", cpu);
	if (cpus > 0)
		buf_addf(out, ", %.0f logical CPUs to use, shared with whoever else is on the machine", cpus);
	if (*features)
		buf_addf(out, "; it has %s", features);
	buf_adds(out, ".\n");
}
