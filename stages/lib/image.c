/*
 * image.c - see image.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "image.h"
#include "file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int image_text(struct image *m, const struct spec *s, const struct buf *source,
	       const struct buf *plan, const char *what, struct err *e)
{
	memset(m, 0, sizeof *m);
	hash_hex(source->data, source->len, m->source_sha);
	hash_hex(plan->data, plan->len, m->plan_sha);
	if (plan_parse(buf_str(plan), plan->len, what, &m->plan, e) < 0)
		return -1;
	if (plan_check(m->plan, s, e) < 0) {
		image_free(m);
		return -1;
	}
	buf_add(&m->source, source->data, source->len);
	return 0;
}

int image_load(struct image *m, const struct spec *s, const char *dir, const char *source,
	       const char *plan, struct err *e)
{
	struct buf text = BUF_INIT, json = BUF_INIT;
	char *a = xasprintf("%s/%s", dir, source), *b = xasprintf("%s/%s", dir, plan);
	int r = file_read(a, 1 << 20, &text, e);

	memset(m, 0, sizeof *m);
	if (r == 0)
		r = file_read(b, PLAN_MAX_BYTES, &json, e);
	if (r == 0)
		r = image_text(m, s, &text, &json, b, e);
	buf_free(&text);
	buf_free(&json);
	free(a);
	free(b);
	return r;
}

/* Names and values of a configuration for a compile; macros_free afterwards. */
struct macros {
	char **text;
	struct box_macro *macro;
	size_t n;
};

static void macros_make(struct macros *x, const struct image *m, const struct spec *s,
			const struct plan_config *config)
{
	x->text = plan_macros(m->plan, s, config);
	for (x->n = 0; x->text[x->n]; x->n++)
		;
	x->macro = xcalloc(x->n + 1, sizeof *x->macro);
	for (size_t i = 0; i < x->n; i++) {
		char *eq = strchr(x->text[i], '=');
		x->macro[i].value = eq ? strtoll(eq + 1, NULL, 10) : 1;
		if (eq)
			*eq = 0;
		x->macro[i].name = x->text[i];
	}
}

static void macros_free(struct macros *x)
{
	free(x->macro);
	plan_macros_free(x->text);
}

/* What every compile of this image has in common. */
static struct box_request request(const struct image *m, const struct spec *s, const char *entries[PLAN_MAX_ENTRIES],
				  const struct macros *x, const char *out_dir)
{
	for (int i = 0; i < m->plan->nentries; i++)
		entries[i] = m->plan->entry[i];
	return (struct box_request){
		.source = buf_str(&m->source), .source_len = m->source.len,
		.entries = entries, .entry_count = (size_t)m->plan->nentries,
		.macros = x->macro, .macro_count = x->n,
		.fast_math = m->plan->compile.fast_math, .out_dir = out_dir,
		.wall_s = (double)s->limits.compile_s,
	};
}

int image_build(struct image *m, const struct spec *s, const char *mode,
		const struct plan_config *config, const char *out_dir, struct err *e)
{
	struct plan_config now;
	const char *entries[PLAN_MAX_ENTRIES];
	struct macros x;

	if (!config) {
		plan_config_current(m->plan, &now);
		config = &now;
	}
	macros_make(&x, m, s, config);
	struct box_request q = request(m, s, entries, &x, out_dir);
	q.mode = mode;
	box_result_free(&m->box);
	memset(&m->box, 0, sizeof m->box);
	int r = box_compile(&q, &m->box, e);
	m->ok = r == 0 && m->box.ok;
	macros_free(&x);
	return r;
}

/* ---- GPU ---- */

/* "sm_90a" -> 90 and 'a'. */
static int arch_number(const char *arch, char *suffix)
{
	char *end;
	long n = strncmp(arch, "sm_", 3) ? 0 : strtol(arch + 3, &end, 10);
	*suffix = n > 0 ? *end : 0;
	return n > 0 && n < 1000 ? (int)n : 0;
}

/* Code for an older GPU runs on a newer one; the features behind a letter are of one GPU only. */
static int arch_serves(const char *device, const char *wanted)
{
	char has, wants;
	int d = arch_number(device, &has), w = arch_number(wanted, &wants);
	return wants ? d == w : d >= w;
}

static int refuse_arch(struct image *m, const char *arch)
{
	struct box_result *r = &m->box;
	snprintf(r->code, sizeof r->code, "guard.limits");
	snprintf(r->message, sizeof r->message, "plan.json: compile.arch: the source requires %.16s, this GPU is %.16s",
		 m->plan->compile.arch, arch);
	return 0;
}

/* Absolute folders of the header trees that the spec declares; cutlass brings cute. */
static size_t header_trees(const struct spec *s, const char *spec_dir, char out[][4096])
{
	size_t n = 0;
	char path[4096];
	for (int i = 0; i < s->nheaders; i++) {
		if (snprintf(path, sizeof path, "%s/%s", spec_dir, s->header[i]) < (int)sizeof path &&
		    realpath(path, out[n]))
			n++;
		if (!strcmp(s->header[i], "cutlass") &&
		    snprintf(path, sizeof path, "%s/cute", spec_dir) < (int)sizeof path && realpath(path, out[n]))
			n++;
	}
	return n;
}

static int build_one_gpu(struct image *m, const struct spec *s, const struct box_request *common, int k,
			 struct err *e)
{
	char name[16];
	struct macros x;
	struct box_request q = *common;
	struct box_result *r = &m->each[k];
	snprintf(name, sizeof name, "cuda-%d", k);
	macros_make(&x, m, s, &m->set.config[k]);
	q.macros = x.macro;
	q.macro_count = x.n;
	q.out_name = name;
	int rc = box_compile(&q, r, e);
	macros_free(&x);
	if (rc)
		return rc;
	m->nbuilt = k + 1;
	snprintf(m->set.path[k], sizeof m->set.path[k], "%.511s", r->path);
	memcpy(m->set.sha[k], r->sha256, HASH_HEX);
	if (r->ok && strlen(r->path) >= sizeof m->set.path[k])
		return err_set(e, EX_BADUSE, "path too long: '%.300s'", r->path);
	return 0;
}

static void box_copy(struct box_result *to, const struct box_result *from)
{
	*to = *from;
	to->facts = from->facts ? cJSON_Duplicate(from->facts, 1) : NULL;
}

static void built_free(struct image *m)
{
	for (int i = 0; i < m->nbuilt; i++)
		box_result_free(&m->each[i]);
	free(m->each);
	m->each = NULL;
	m->nbuilt = 0;
	box_result_free(&m->box);
	memset(&m->box, 0, sizeof m->box);
	memset(&m->set, 0, sizeof m->set);
	m->ok = 0;
}

int image_build_gpu(struct image *m, const struct spec *s, const char *spec_dir, const char *arch,
		    const char *out_dir, struct err *e)
{
	const char *entries[PLAN_MAX_ENTRIES], *headers[2 * SPEC_MAX_HEADERS];
	char (*tree)[4096] = xcalloc(2 * SPEC_MAX_HEADERS, sizeof *tree);
	const struct macros none = {0};
	int rc = 0;
	built_free(m);
	m->each = xcalloc(PLAN_MAX_CONFIGS, sizeof *m->each);
	struct box_request q = request(m, s, entries, &none, out_dir);
	q.mode = "cuda";
	q.arch = arch;
	q.knobs = &m->plan->compile;
	q.headers = headers;
	q.header_count = header_trees(s, spec_dir, tree);
	for (size_t i = 0; i < q.header_count; i++)
		headers[i] = tree[i];
	if (m->plan->compile.arch && !arch_serves(arch, m->plan->compile.arch)) {
		free(tree);
		return refuse_arch(m, arch);
	}
	if (plan_configs(m->plan, m->set.config, &m->set.n, e))
		rc = -1;
	m->ok = rc == 0;
	for (int k = 0; rc == 0 && m->ok && k < m->set.n; k++) {
		rc = build_one_gpu(m, s, &q, k, e);
		m->ok = rc == 0 && m->each[k].ok;
	}
	if (m->nbuilt)
		box_copy(&m->box, m->ok ? &m->each[0] : &m->each[m->nbuilt - 1]);
	free(tree);
	return rc;
}

int image_pick(const struct image_set *set, const struct plan *p, const struct spec *s, const struct axes *a,
	       const struct facts *f, struct err *e)
{
	struct plan_config c;
	if (plan_config_for(p, s, a, f, &c, e))
		return -1;
	for (int k = 0; k < set->n; k++)
		if (plan_config_equal(&set->config[k], &c))
			return k;
	return err_set(e, EX_HARNESS, "%s: no image was built for the configuration of this size", p->file);
}

void image_free(struct image *m)
{
	buf_free(&m->source);
	plan_free(m->plan);
	built_free(m);
	memset(m, 0, sizeof *m);
}
