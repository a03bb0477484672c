/* Chooses which CUDA thread runs next, and runs launches.
 *
 * SPDX-License-Identifier: MIT
 *
 * Order of choice within the current block: threads released from a barrier or collective,
 * then threads not started, then (a pass is complete) those that yielded; a complete pass
 * goes on to the next resident block, or starts a new one up to the residency.
 */
#include "rt.h"
#include <string.h>

EMU_STATE struct emu_hot emu_hot;
EMU_STATE struct launch_state emu_g;
EMU_STATE struct fiber emu_main_fiber;
EMU_STATE struct fiber *emu_cur = &emu_main_fiber;
EMU_STATE struct emu_slot emu_thread;
EMU_STATE struct emu_u3 emu_blockIdx, emu_blockDim, emu_gridDim;

enum choice { RESUME, FRESH, END };

void list_move(struct list *to, struct list *from)
{
	if (!from->head)
		return;
	if (to->tail)
		to->tail->next = from->head;
	else
		to->head = from->head;
	to->tail = from->tail;
	to->n += from->n;
	*from = (struct list){0};
}

/* Until its first wait a block only counts threads by the position in the order. From then
 * on each end of a thread is accounted for, because somebody may be waiting for it. */
void sched_become_slow(void)
{
	struct block *b = emu_g.current;
	if (b->slow)
		return;
	b->slow = emu_hot.slow = 1;
	emu_cur->slot = emu_hot.next - 1;
	emu_cur->block = b;
	for (const struct emu_slot *s = emu_g.order; s < emu_hot.next - 1; s++) {
		b->warps[s->lin / EMU_WARP].exited |= 1u << (s->lin % EMU_WARP);
		b->live--;
	}
}

static void block_enter(struct block *b)
{
	struct block *old = emu_g.current;
	if (old == b)
		return;
	if (old) {
		old->next = emu_hot.next;
		emu_g.block_switches++;
	}
	emu_g.current = emu_g.ring = b;
	emu_hot.next = b->next;
	emu_hot.end = emu_g.order + emu_g.threads;
	emu_hot.slow = b->slow;
	emu_blockIdx = b->index;
	shared_enter(b);
}

static int block_can_run(const struct block *b)
{
	const struct emu_slot *next = b == emu_g.current ? emu_hot.next : b->next;
	return b->ready.head || next < emu_g.order + emu_g.threads || b->yielded.head ||
	       b->masks.head;
}

static struct block *block_new(void)
{
	struct block *b = emu_g.free_blocks;
	if (b) {
		emu_g.free_blocks = b->ring;
	} else {
		b = block_make();
	}
	block_start(b, emu_g.started++);
	struct block *at = emu_g.ring;
	if (!at) {
		b->ring = b->ring_back = b;
		emu_g.ring = b;
	} else { /* before the one looked at now: last to be looked at again */
		b->ring = at;
		b->ring_back = at->ring_back;
		at->ring_back->ring = b;
		at->ring_back = b;
	}
	emu_g.resident++;
	return b;
}

static void block_finish(struct block *b)
{
	emu_g.finished++;
	emu_g.resident--;
	emu_g.progress++;
	if (emu_g.image_owner == b)
		emu_g.image_owner = NULL;
	emu_g.current = NULL;
	emu_g.ring = b->ring == b ? NULL : b->ring;
	b->ring_back->ring = b->ring;
	b->ring->ring_back = b->ring_back;
	b->ring = emu_g.free_blocks;
	emu_g.free_blocks = b;
	grid_check();
}

/* A new block while there is room, else the next resident one that can go on. NULL: none. */
static struct block *block_choose(void)
{
	if (emu_g.started < emu_g.blocks && emu_g.resident < emu_g.residency)
		return block_new();
	struct block *b = emu_g.current ? emu_g.current->ring : emu_g.ring;
	for (unsigned i = 0; i < emu_g.resident; i++, b = b->ring)
		if (block_can_run(b))
			return b;
	return NULL;
}

static enum choice choose(struct fiber **out)
{
	for (;;) {
		struct block *b = emu_g.current;
		if (emu_g.expired)
			report_stuck((uint32_t)emu_g.expired);
		if (b) {
			if (b->ready.head) {
				*out = list_pop(&b->ready);
				return RESUME;
			}
			if (emu_hot.next < emu_hot.end)
				return FRESH;
			if (!b->slow)
				b->live = 0;
			if (b->live == 0) {
				block_finish(b);
				if (emu_g.finished == emu_g.blocks)
					return END;
			} else if (warp_resolve_masks(b)) {
				continue;
			} else {
				list_move(&b->ready, &b->yielded);
			}
		}
		struct block *n = block_choose();
		if (!n)
			report_stuck(EMU_BARRIER_DIVERGENCE);
		block_enter(n);
	}
}

static void fiber_main(void)
{
	for (;;) {
		emu_cur->block = emu_g.current;
		emu_g.entry->threads(emu_g.args);
		struct fiber *f = NULL;
		switch (choose(&f)) {
		case FRESH:
			break;
		case RESUME:
			fiber_put(emu_cur);
			sched_switch(f);
			break;
		case END:
			fiber_put(emu_cur);
			sched_switch(&emu_main_fiber);
			break;
		}
	}
}

/* Leaves the current fiber where it is listed and runs somebody else. */
void sched_go(void)
{
	struct fiber *f = NULL;
	switch (choose(&f)) {
	case RESUME:
		break;
	case FRESH:
		f = fiber_get(fiber_main);
		f->block = emu_g.current;
		break;
	case END:
		f = &emu_main_fiber;
		break;
	}
	sched_switch(f);
}

void sched_wait(enum fiber_state state, struct list *list, int line, const char *file)
{
	struct fiber *f = emu_cur;
	f->state = state;
	f->line = line;
	f->file = file;
	if (list)
		list_push(list, f);
	sched_next();
}

/* Called when a thread's function has returned in a block that accounts for each thread. */
int emu_take_slow(void)
{
	struct block *b = emu_g.current;
	struct fiber *f = emu_cur;
	if (f->slot) {
		unsigned lin = f->slot->lin;
		f->slot = NULL;
		emu_g.progress++;
		block_exit_thread(b, lin);
	}
	if (b->ready.head || emu_hot.next == emu_hot.end)
		return 0;
	f->slot = emu_hot.next++;
	f->block = b;
	emu_thread = *f->slot;
	return 1;
}

static void yield_now(void)
{
	sched_become_slow();
	sched_wait(FIBER_READY, &emu_g.current->yielded, 0, NULL);
	emu_hot.spin = EMU_SPIN_BUDGET;
}

void emu_yield(void)
{
	emu_hot.busy = 1;
	hook_sync_op();
	yield_now();
	emu_hot.busy = 0;
}

void emu_spun(void)
{
	emu_hot.busy = 1;
	yield_now();
	emu_hot.busy = 0;
}

void emu_fence(void)
{
	emu_hot.busy = 1;
	hook_sync_op();
	emu_hot.spin -= EMU_SPIN_FENCE;
	if (emu_hot.spin <= 0)
		yield_now();
	emu_hot.busy = 0;
}

/* From the timer's signal handler, on the interrupted thread's own stack. */
void sched_preempt(void)
{
	emu_hot.busy = 1;
	yield_now();
	emu_hot.busy = 0;
}

int sched_run(const struct emu_launch *l, unsigned index, void **args, unsigned residency,
	      uint64_t poison)
{
	struct launch_state *g = &emu_g;
	g->launch = l;
	g->index = index;
	g->entry = &emu_entries[l->entry];
	g->args = args;
	g->threads = l->block[0] * l->block[1] * l->block[2];
	g->warps = (g->threads + EMU_WARP - 1) / EMU_WARP;
	g->blocks = (uint64_t)l->grid[0] * l->grid[1] * l->grid[2];
	g->started = g->finished = 0;
	g->resident = 0;
	g->residency = residency;
	g->poison = poison;
	g->current = g->ring = g->image_owner = NULL;
	g->grid_ready = 0;
	hook_sync_op(); /* a launch orders everything */
	emu_blockDim = (struct emu_u3){l->block[0], l->block[1], l->block[2]};
	emu_gridDim = (struct emu_u3){l->grid[0], l->grid[1], l->grid[2]};
	emu_hot.thread = &emu_thread;
	emu_hot.spin = EMU_SPIN_BUDGET;
	emu_hot.busy = 1;
	sched_go();
	emu_cur = &emu_main_fiber;
	hook_sync_op();
	return 0;
}
