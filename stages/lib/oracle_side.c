/*
 * oracle_side.c - the checker's own arms: reference and baseline, their images and memory. See
 * oracle.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "oracle.h"
#include "buf.h"
#include "file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int oracle_add_inputs(struct mem_layout *l, const struct spec *s, const struct axes *a, struct err *e)
{
	for (int i = 0; i < s->ninputs; i++) {
		int64_t bytes;
		if (s->input[i].scalar)
			continue;
		if (spec_bytes(s, &s->input[i], a, &bytes, e) < 0 ||
		    mem_add(l, s->input[i].name, MEM_INPUT, i, (int)s->input[i].dtype,
			    (uint64_t)bytes, e) < 0)
			return -1;
	}
	return 0;
}

int oracle_add_outputs(struct mem_layout *l, const struct spec *s, const struct axes *a, int reference,
		       struct err *e)
{
	for (int i = 0; i < s->noutputs; i++) {
		const struct spec_tensor *t = &s->output[i];
		enum dtype dt = reference && dtype_is_float(t->dtype) ? DT_F64 : t->dtype;
		int64_t bytes;
		int r = reference ? spec_reference_bytes(s, t, a, &bytes, e)
				  : spec_bytes(s, t, a, &bytes, e);
		if (r < 0 || mem_add(l, t->name, MEM_OUTPUT, i, (int)dt, (uint64_t)bytes, e) < 0)
			return -1;
	}
	return 0;
}

int oracle_add_workspaces(struct mem_layout *l, const uint64_t *ws, uint32_t n, struct err *e)
{
	for (uint32_t i = 0; i < n && i < CHECKER_WS; i++) {
		char name[32];
		snprintf(name, sizeof name, "workspace %u", i);
		if (mem_add(l, name, MEM_WORKSPACE, (int)i, DT_NONE, ws[i], e) < 0)
			return -1;
	}
	return 0;
}

/* Workspaces of a plan at these axes. */
static int side_workspaces(struct oracle *o, struct oracle_side *d, int reference,
			   struct mem_layout *l, struct err *e)
{
	struct facts f;
	struct launches n;

	if (facts_find(o->device, &f, e) < 0 ||
	    plan_resolve(d->image->plan, o->spec, &o->axes, &f, reference, &n, e) < 0)
		return -1;
	uint64_t ws[CHECKER_WS] = {0};
	for (int i = 0; i < n.nworkspaces; i++)
		ws[i] = (uint64_t)n.workspace[i].bytes;
	int r = oracle_add_workspaces(l, ws, (uint32_t)n.nworkspaces, e);
	launches_free(&n);
	return r;
}

static int kit_read(const struct oracle_kit *k, const char *file, size_t max, struct buf *out,
		    struct err *e)
{
	if (k->run)
		return run_spec_read(k->run, file, max, out, NULL, e);
	char *path = xasprintf("%s/%s", k->dir, file);
	int r = file_read(path, max, out, e);
	free(path);
	return r;
}

/* Read and compile once; what is there already is taken. */
int oracle_kit_image(const struct oracle_kit *k, struct image *m, int *has, const struct spec *s,
		     const char *source, const char *plan, struct err *e)
{
	struct buf text = BUF_INIT, json = BUF_INIT;

	if (*has)
		return 0;
	int r = kit_read(k, source, 1 << 20, &text, e);
	if (r == 0)
		r = kit_read(k, plan, PLAN_MAX_BYTES, &json, e);
	if (r == 0)
		r = image_text(m, s, &text, &json, plan, e);
	buf_free(&text);
	buf_free(&json);
	if (r < 0)
		return -1;
	*has = 1;
	if (image_build(m, s, "emu-fast", NULL, NULL, e) < 0)
		return -1;
	if (!m->ok)
		return err_set(e, EX_BADINPUT, "'%s' does not compile: %s", source, m->box.message);
	return 0;
}

void oracle_kit_free(struct oracle_kit *k)
{
	if (k->has_ref)
		image_free(&k->ref);
	if (k->has_base)
		image_free(&k->base);
	k->has_ref = k->has_base = 0;
}

void oracle_expose(struct oracle *o, int behind)
{
	const uint8_t *ref = o->now.ref;

	for (int i = 0; i < o->spec->noutputs; i++) {
		const struct mem_buf *b = mem_find(&o->mem.l, MEM_OUTPUT, i);
		enum dtype t = (enum dtype)b->dtype;
		size_t w = dtype_size(t), n = b->bytes / w, step = dtype_is_float(t) ? 8 : w;
		size_t slack = (b->seg_off + b->seg_len - b->offset - b->bytes) / w;
		for (size_t k = behind ? n : 0; k < n + (!behind ? 0 : slack < n ? slack : n); k++) {
			double v;
			memcpy(&v, ref + k % n * step, step == 8 ? 8 : 0);
			if (dtype_is_float(t))
				dtype_store(t, o->mem.rw + b->offset, k, v);
			else
				memcpy(o->mem.rw + b->offset + k * w, ref + k % n * w, w);
		}
		ref += oracle_step(n * step);
	}
	memcpy(o->mem.want, o->mem.rw, o->mem.l.rw_bytes);
}

/* Lay out memory like the workload's as far as inputs go, start the arm. */
int oracle_side_open(struct oracle *o, struct oracle_side *d, const struct image *image,
		     int reference, struct err *e)
{
	struct mem_layout l = {0};

	if (!image->ok)
		return err_set(e, EX_BADINPUT, "no image of the %s",
			       reference ? "reference" : "baseline");
	d->open = 1;
	d->image = image;
	d->mem.in_fd = d->mem.rw_fd = -1;
	if (oracle_add_inputs(&l, o->spec, &o->axes, e) < 0 ||
	    oracle_add_outputs(&l, o->spec, &o->axes, reference, e) < 0 ||
	    side_workspaces(o, d, reference, &l, e) < 0 ||
	    mem_plan(&l, (int)o->mem.l.fence, NULL, e) < 0 || mem_create(&d->mem, &l, e) < 0)
		return -1;
	struct arm_opts a = {
		.device = o->device, .artefact = image->box.path, .reference = reference,
		.artefact_sha = image->box.sha256, .spec = o->spec, .plan = image->plan,
		.axes = &o->axes, .layout = &l, .in_fd = o->mem.in_fd, .rw_fd = d->mem.rw_fd,
		.timeout_ns = 120000000000,
	};
	return arm_open(&d->arm, &a, e);
}

void oracle_side_close(struct oracle_side *d)
{
	if (!d->open)
		return;
	arm_close(d->arm);
	if (d->mem.in)
		mem_destroy(&d->mem);
	memset(d, 0, sizeof *d);
}
