/*
 * arm_emu_part.h - what the two files of the emulated arm share. Private to them.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_ARM_EMU_PART_H
#define TS_ARM_EMU_PART_H

#include "arm_impl.h"
#include "buf.h"
#include "child_call.h"

#include "../emu/protocol.h"

struct emu {
	struct child child;
	int started, dead, mapped;
	int held;             /* stopped, between a reply and the next command */
	int script_fd;
	struct buf script;
	int sanitize;
	struct mem_layout layout;
	int64_t timeout_ns;
	int args_moved;       /* the arguments are no longer those of MAP */
	double cpu_at_reply;  /* seconds; negative before the first */
	int64_t late_at_wipe; /* CPU between the last run and the wipe after it */
	double scalar[SPEC_MAX_TENSORS];
};

/* arm_script.c: the launches of `a` as a script (stages/emu/protocol.h) into m->script, its
 * args last and in launch order; one argument again, after its scalar changed. */
int script_make(struct arm *a, struct emu *m, const struct plan *p, struct err *e);
int script_arg(const struct emu *m, const struct launch_arg *a, struct emu_arg *o, struct err *e);

#endif
