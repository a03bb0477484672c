/*
 * tune_files.c - what tune leaves for the later steps. See tune_part.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tune_part.h"

#include "file.h"

#include <stdio.h>
#include <string.h>

static const char *const BUILDS[] = {"emu-fast", "emu-sanitize", "emu-race", "sim", "cuda-0", "cuda-1",
	"cuda-2", "cuda-3", "cuda-0.ptx", "cuda-1.ptx", "cuda-2.ptx", "cuda-3.ptx", NULL};

/* Copy what guard made of the attempt. */
static int copy_artefacts(struct tune *t, struct err *e)
{
	for (int i = 0; BUILDS[i]; i++) {
		char from[TRIAL_PATH], to[64], sha[HASH_HEX];
		struct buf b = BUF_INIT;
		struct err none;
		snprintf(from, sizeof from, "%s/artefact/%s", stage_candidate_dir(t->s), BUILDS[i]);
		snprintf(to, sizeof to, "artefact/%s", BUILDS[i]);
		if (stage_recorded(t->s, from, sha, &none) < 0)
			continue;
		int named = !strcmp(BUILDS[i], t->sim ? "sim" : t->on_gpu ? "cuda-0" : "emu-fast");
		int rc = stage_use(t->s, named ? "artefact" : NULL, from, sha, 64u << 20, &b, e);
		if (rc == 0)
			rc = stage_side(t->s, to, b.data, b.len, e);
		buf_free(&b);
		if (rc < 0)
			return -1;
	}
	return 0;
}

static int copy_built(struct tune *t, const char *name, const char *path, const char *want, struct err *e)
{
	char to[64];
	struct buf b = BUF_INIT;
	char sha[HASH_HEX];

	snprintf(to, sizeof to, "artefact/%s", name);
	int rc = file_read(path, 64u << 20, &b, e);
	if (rc == 0) {
		hash_hex(b.data, b.len, sha);
		rc = strcmp(sha, want) ? err_set(e, EX_BADINPUT, "'%s' is not what the box made", path)
				       : stage_side(t->s, to, b.data, b.len, e);
	}
	buf_free(&b);
	return rc;
}

static int copy_images(struct tune *t, const struct image *m, struct err *e)
{
	char name[32];

	for (int i = 0; i < m->nbuilt; i++) {
		const struct box_result *r = &m->each[i];
		snprintf(name, sizeof name, "cuda-%d", i);
		if (copy_built(t, name, r->path, r->sha256, e) < 0)
			return -1;
		snprintf(name, sizeof name, "cuda-%d.ptx", i);
		if (copy_built(t, name, r->ptx, r->ptx_sha256, e) < 0)
			return -1;
	}
	return 0;
}

static int make_dirs(struct tune *t, struct err *e)
{
	char path[TRIAL_PATH];

	trial_path(path, t->s->id, "candidate");
	if (dir_make(path, e) < 0)
		return -1;
	trial_path(path, t->s->id, "artefact");
	return dir_make(path, e);
}

/* sim runs nothing: its artefact says what it stands for, as guard's does. */
static int sim_artefact(struct tune *t, const struct tune_entry *x, struct err *e)
{
	struct buf b = BUF_INIT;
	char plan[HASH_HEX];

	hash_hex(buf_str(&x->plan), x->plan.len, plan);
	buf_addf(&b, "simulated: nothing was compiled\nkernel.cu %s\nplan.json %s\n",
		 x->image.source_sha, plan);
	int rc = stage_side(t->s, "artefact/sim", b.data, b.len, e);
	buf_free(&b);
	return rc;
}

int tune_files(struct tune *t, struct tune_entry *x, struct err *e)
{
	if (make_dirs(t, e) < 0 ||
	    stage_side(t->s, "candidate/kernel.cu", buf_str(&t->kernel), t->kernel.len, e) < 0)
		return -1;
	if (!x || (t->own >= 0 && x == &t->entry[t->own]))
		return stage_side(t->s, "candidate/plan.json", buf_str(&t->plan_text), t->plan_text.len,
				  e) < 0 || copy_artefacts(t, e) < 0 ? -1 : 0;
	if (stage_side(t->s, "candidate/plan.json", buf_str(&x->plan), x->plan.len, e) < 0)
		return -1;
	if (t->sim)
		return sim_artefact(t, x, e);
	if (t->on_gpu)
		return copy_images(t, &x->image, e);
	for (int i = 0; i < 2; i++)
		if (image_build(&x->image, t->spec, BUILDS[i], NULL, NULL, e) < 0 ||
		    (x->image.ok &&
		     copy_built(t, BUILDS[i], x->image.box.path, x->image.box.sha256, e) < 0))
			return -1;
	return 0;
}
