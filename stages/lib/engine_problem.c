/*
 * engine_problem.c - see engine_problem.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "engine_problem.h"

#include "buf.h"
#include "facts.h"

int engine_problem(const struct stage *s, struct buf *text, struct err *e)
{
	enum spec_kind kind = SPEC_KERNEL;
	if (run_spec_read(&s->run, "spec.json", 1 << 20, text, NULL, e) ||
	    spec_kind(buf_str(text), text->len, &kind, e)) {
		buf_free(text);
		return -1;
	}
	if (kind == SPEC_KERNEL)
		buf_free(text);
	return kind == SPEC_ENGINE;
}

void engine_on_host(struct stage *s)
{
	if (device_class_of(s->trial.device) != DEVICE_EMU)
		return;
	s->v.emulated = 0;
	cJSON_Delete(s->v.device);
	s->v.device = cJSON_CreateObject();
	cJSON_AddStringToObject(s->v.device, "kind", "host");
}

int engine_device(const struct stage *s, const struct engine_spec *p, struct err *e)
{
	const enum device_class c = device_class_of(s->trial.device);
	if (c == DEVICE_SIM || c == (p->cuda ? DEVICE_CUDA : DEVICE_EMU))
		return 0;
	return err_set(e, EX_NOENV, "an engine in %s does not run on %s", p->cuda ? "CUDA" : "C", s->trial.device);
}
