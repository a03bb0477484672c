/* Warp collectives: lanes of a mask meet, the last one computes for all.
 *
 * SPDX-License-Identifier: MIT
 *
 * Lanes that have returned are not waited for, as on the hardware; what they would have
 * contributed to a shuffle reads as poison. Groups are matched by mask and kind: a lane that
 * comes with another mask or another operation never completes the group, and the launch
 * ends with a report of where each of them waits.
 */
#include "rt.h"
#include <string.h>

static uint64_t reduce(int kind, uint64_t a, uint64_t b)
{
	int sa = (int)(unsigned)a, sb = (int)(unsigned)b;
	unsigned ua = (unsigned)a, ub = (unsigned)b;
	switch (kind) {
	case EMU_WARP_ADD:
		return (unsigned)(ua + ub);
	case EMU_WARP_MIN_S:
		return (unsigned)(sa < sb ? sa : sb);
	case EMU_WARP_MAX_S:
		return (unsigned)(sa > sb ? sa : sb);
	case EMU_WARP_MIN_U:
		return ua < ub ? ua : ub;
	case EMU_WARP_MAX_U:
		return ua > ub ? ua : ub;
	case EMU_WARP_AND:
		return a & b;
	case EMU_WARP_OR:
		return a | b;
	default:
		return a ^ b;
	}
}

static int next_lane(unsigned *mask)
{
	int lane = __builtin_ctz(*mask);
	*mask &= *mask - 1;
	return lane;
}

static void group_compute(struct warp *w, int kind, unsigned lanes)
{
	uint64_t out[EMU_WARP], all = 0;
	unsigned m = lanes;
	switch (kind) {
	case EMU_WARP_SYNC:
		return;
	case EMU_WARP_SHFL_IDX:
	case EMU_WARP_SHFL_UP:
	case EMU_WARP_SHFL_DOWN:
	case EMU_WARP_SHFL_XOR:
		while (m) {
			int i = next_lane(&m);
			unsigned s = w->lane[i]->source & (EMU_WARP - 1);
			out[i] = lanes >> s & 1 ? w->lane[s]->value : emu_g.poison;
		}
		break;
	case EMU_WARP_MATCH_ANY:
		while (m) {
			int i = next_lane(&m);
			out[i] = 0;
			for (unsigned k = lanes; k;) {
				int j = next_lane(&k);
				if (w->lane[j]->value == w->lane[i]->value)
					out[i] |= 1u << j;
			}
		}
		break;
	case EMU_WARP_MATCH_ALL:
		all = lanes;
		for (unsigned k = lanes; k;)
			if (w->lane[next_lane(&k)]->value != w->lane[__builtin_ctz(lanes)]->value)
				all = 0;
		for (unsigned k = lanes; k;)
			out[next_lane(&k)] = all;
		break;
	case EMU_WARP_BALLOT:
		for (unsigned k = lanes; k;) {
			int i = next_lane(&k);
			all |= (uint64_t)(w->lane[i]->value != 0) << i;
		}
		for (unsigned k = lanes; k;)
			out[next_lane(&k)] = all;
		break;
	default:
		all = w->lane[next_lane(&m)]->value;
		while (m)
			all = reduce(kind, all, w->lane[next_lane(&m)]->value);
		for (unsigned k = lanes; k;)
			out[next_lane(&k)] = all;
		break;
	}
	for (m = lanes; m;) {
		int i = next_lane(&m);
		w->lane[i]->value = out[i];
	}
}

/* Lets all lanes of a complete group go, except `self`, which runs already. */
static void group_finish(struct block *b, struct warp *w, unsigned index, const struct fiber *self)
{
	unsigned lanes = w->groups[index].arrived;
	group_compute(w, w->groups[index].kind, lanes);
	w->groups[index] = w->groups[--w->n_groups];
	w->collectives++;
	while (lanes) {
		struct fiber *f = w->lane[next_lane(&lanes)];
		if (f == self)
			continue;
		list_push(&b->ready, f);
	}
}

unsigned long long emu_warp(int kind, unsigned mask, unsigned long long value, unsigned source,
			    int line, const char *file)
{
	emu_hot.busy = 1;
	sched_become_slow();
	struct block *b = emu_g.current;
	struct fiber *f = emu_cur;
	unsigned lane = f->slot->lin % EMU_WARP;
	struct warp *w = &b->warps[f->slot->lin / EMU_WARP];
	f->value = value;
	f->source = source;
	f->kind = kind;
	f->mask = mask;
	f->line = line;
	f->file = file;
	f->state = FIBER_WARP;
	if (!(mask >> lane & 1))
		report_fail(EMU_BARRIER_DIVERGENCE, 0, line, file,
			    "lane %u calls a warp operation with mask 0x%08x, which leaves it out",
			    lane, mask);
	unsigned g = 0;
	while (g < w->n_groups && (w->groups[g].mask != mask || w->groups[g].kind != kind))
		g++;
	if (g == w->n_groups)
		w->groups[w->n_groups++] = (struct group){mask, 0, kind};
	w->groups[g].arrived |= 1u << lane;
	w->lane[lane] = f;
	if (w->groups[g].arrived == (mask & ~w->exited))
		group_finish(b, w, g, f);
	else
		sched_next();
	emu_hot.busy = 0;
	return f->value;
}

/* A lane has returned: groups that waited only for it are complete. */
void warp_exit_lane(struct block *b, struct warp *w)
{
	for (unsigned g = 0; g < w->n_groups;) {
		if (w->groups[g].arrived == (w->groups[g].mask & ~w->exited))
			group_finish(b, w, g, NULL);
		else
			g++;
	}
}

/* __activemask(): which lanes run together cannot be seen from outside, so the answer waits
 * until the block can do nothing else, and then names those that ask at the same place. */
unsigned emu_activemask(int line, const char *file)
{
	emu_hot.busy = 1;
	sched_become_slow();
	struct fiber *f = emu_cur;
	sched_wait(FIBER_ACTIVEMASK, &emu_g.current->masks, line, file);
	emu_hot.busy = 0;
	return f->mask;
}

int warp_resolve_masks(struct block *b)
{
	if (!b->masks.head)
		return 0;
	for (struct fiber *f = b->masks.head; f; f = f->next) {
		f->mask = 0;
		for (struct fiber *o = b->masks.head; o; o = o->next)
			if (o->slot->lin / EMU_WARP == f->slot->lin / EMU_WARP &&
			    o->line == f->line && o->file == f->file)
				f->mask |= 1u << (o->slot->lin % EMU_WARP);
	}
	list_move(&b->ready, &b->masks);
	return 1;
}
