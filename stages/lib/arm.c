/*
 * arm.c - choose the device implementation of an arm; what they have in common. See arm.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "arm_impl.h"
#include "buf.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

int64_t arm_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

const char *arm_status_name(enum arm_status s)
{
	static const char *const NAME[] = {"ok", "fault", "sanitizer", "deadlock", "timeout",
					   "refused", "protocol", "barrier", "race"};

	return s <= ARM_RACE ? NAME[s] : "?";
}

int arm_open(struct arm **out, const struct arm_opts *o, struct err *e)
{
	struct arm *a = xcalloc(1, sizeof *a);

	*out = NULL;
	a->spec = o->spec;
	a->axes = *o->axes;
	if (o->facts)
		a->facts = *o->facts;
	else if (facts_find(o->device, &a->facts, e) < 0)
		goto fail;
	a->ops = a->facts.class == DEVICE_EMU ? &ARM_EMU_OPS : a->facts.class == DEVICE_SIM ? &ARM_SIM_OPS
											      : &ARM_CUDA_OPS;
	if (a->ops->before && a->ops->before(a, o, e) < 0)
		goto fail;
	if (plan_resolve(o->plan, o->spec, o->axes, &a->facts, o->reference, &a->l, e) < 0) {
		if (a->ops->undo)
			a->ops->undo(a);
		goto fail;
	}
	if (a->ops->open(a, o, e) < 0) {
		launches_free(&a->l);
		goto fail;
	}
	*out = a;
	return 0;
fail:
	free(a);
	return -1;
}

int arm_run(struct arm *a, const struct arm_run_opts *r, struct arm_result *out, struct err *e)
{
	memset(out, 0, sizeof *out);
	out->cpu_ns = out->late_ns = -1;
	int rc = a->ops->run(a, r, out, e);
	/* stage.c notes it as the child's death: once is an accident, twice ends the trial */
	if (rc == 0 && out->killed)
		return err_set(e, EX_HARNESS, "the kernel's process was killed from outside");
	return rc;
}

void arm_wipe(struct arm *a, struct arm_result *out)
{
	memset(out, 0, sizeof *out);
	if (a->ops->wipe)
		a->ops->wipe(a, out);
}

void arm_close(struct arm *a)
{
	if (!a)
		return;
	a->ops->close(a);
	launches_free(&a->l);
	free(a);
}

uint32_t arm_workspaces(const struct arm *a, uint64_t *bytes, uint32_t max)
{
	uint32_t n = 0;

	for (; n < (uint32_t)a->l.nworkspaces && n < max; n++)
		bytes[n] = (uint64_t)a->l.workspace[n].bytes;
	return n;
}

int64_t arm_late(struct arm *a)
{
	return a->ops->late(a);
}

int arm_alive(struct arm *a)
{
	return a->ops->alive(a);
}

const char *arm_isolation(const struct arm *a)
{
	return a->isolation;
}
