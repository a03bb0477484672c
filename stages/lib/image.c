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

int image_build(struct image *m, const struct spec *s, const char *mode,
		const struct plan_config *config, const char *out_dir, struct err *e)
{
	struct plan_config now;
	const char *entries[PLAN_MAX_ENTRIES];
	size_t n = 0;

	if (!config) {
		plan_config_current(m->plan, &now);
		config = &now;
	}
	for (int i = 0; i < m->plan->nentries; i++)
		entries[i] = m->plan->entry[i];
	char **text = plan_macros(m->plan, s, config);
	while (text[n])
		n++;
	struct box_macro *macro = xcalloc(n + 1, sizeof *macro);
	for (size_t i = 0; i < n; i++) {
		char *eq = strchr(text[i], '=');
		macro[i].value = eq ? strtoll(eq + 1, NULL, 10) : 1;
		if (eq)
			*eq = 0;
		macro[i].name = text[i];
	}
	struct box_request q = {
		.mode = mode, .source = buf_str(&m->source), .source_len = m->source.len,
		.entries = entries, .entry_count = (size_t)m->plan->nentries,
		.macros = macro, .macro_count = n,
		.fast_math = m->plan->compile.fast_math, .out_dir = out_dir,
		.wall_s = (double)s->limits.compile_s,
	};
	box_result_free(&m->box);
	memset(&m->box, 0, sizeof m->box);
	int r = box_compile(&q, &m->box, e);
	m->ok = r == 0 && m->box.ok;
	free(macro);
	plan_macros_free(text);
	return r;
}

void image_free(struct image *m)
{
	buf_free(&m->source);
	plan_free(m->plan);
	box_result_free(&m->box);
	memset(m, 0, sizeof *m);
}
