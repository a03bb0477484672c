/* One block's life: start, __syncthreads() and its votes, grid.sync(), ends of threads.
 *
 * SPDX-License-Identifier: MIT
 */
#include "rt.h"
#include <string.h>
#include <sys/mman.h>

static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15u;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

/* Start order to block index. Blocks may wait for lower ones beyond the residency, so the
 * other orders permute only within a window of blocks that are resident together. */
static uint64_t block_place(uint64_t serial)
{
	uint64_t window = emu_g.residency, base = serial / window * window;
	uint64_t n = emu_g.blocks - base < window ? emu_g.blocks - base : window;
	uint64_t i = serial - base;
	if (emu_g.order_mode == EMU_ORDER_REVERSE)
		return base + (n - 1 - i);
	if (emu_g.order_mode == EMU_ORDER_SHUFFLE && n > 2) {
		uint64_t h = mix(emu_g.order_seed ^ mix(base)), step = h % n | 1;
		for (;; step += 2) { /* the first odd step without a common factor */
			uint64_t a = n, c = step % n;
			while (c) {
				uint64_t t = a % c;
				a = c;
				c = t;
			}
			if (a == 1)
				break;
		}
		return base + (i * (step % n) + (h >> 32)) % n;
	}
	return serial;
}

/* A record and the place for its shared memory, side by side at an address by number. */
enum { RECORD_BYTES = 24576, BLOCK_BYTES = RECORD_BYTES + EMU_MAX_SHARED + 8192 };
_Static_assert(sizeof(struct block) <= RECORD_BYTES, "a block's record has its place");

static struct block *block_at(unsigned i)
{
	return (void *)(EMU_BLOCKS_BASE + (uint64_t)i * BLOCK_BYTES);
}

struct block *block_make(void)
{
	unsigned i = wipe_pools()->blocks;
	struct block *b = block_at(i);
	void *at = mmap(b, BLOCK_BYTES, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
	if (at != b)
		report_fail(EMU_NOT_EMULABLE, 0, 0, NULL, "no memory for a block");
	b->image = (char *)b + RECORD_BYTES;
	wipe_pools_set(wipe_pools()->fibers, i + 1);
	return b;
}

/* All blocks are free and empty. */
void block_wipe(void)
{
	int few = (uint64_t)wipe_pools()->blocks * BLOCK_BYTES <= EMU_CLEAR_MOST;
	emu_g.free_blocks = NULL;
	for (unsigned i = wipe_pools()->blocks; i-- > 0;) {
		struct block *b = block_at(i);
		char *image = (char *)b + RECORD_BYTES;
		wipe_clear((char *)b, (char *)b + BLOCK_BYTES, few);
		b->image = image;
		b->ring = emu_g.free_blocks;
		emu_g.free_blocks = b;
	}
}

void block_start(struct block *b, uint64_t serial)
{
	char *image = b->image;
	memset(b, 0, offsetof(struct block, warps));
	b->image = image;
	b->image_state = IMAGE_NEW;
	b->bar_epoch = ++emu_g.epochs;
	b->serial = serial;
	uint64_t at = block_place(serial);
	b->index.x = (unsigned)(at % emu_gridDim.x);
	b->index.y = (unsigned)(at / emu_gridDim.x % emu_gridDim.y);
	b->index.z = (unsigned)(at / emu_gridDim.x / emu_gridDim.y);
	b->live = emu_g.threads;
	b->next = emu_g.order;
	for (unsigned w = 0; w < emu_g.warps; w++) {
		unsigned lanes = emu_g.threads - w * EMU_WARP;
		b->warps[w].exited = lanes >= EMU_WARP ? 0 : ~0u << lanes;
		b->warps[w].n_groups = 0;
	}
}

void block_release_barrier(struct block *b)
{
	b->bar_result = b->bar_acc; /* stays until all have read it: the next needs them all */
	list_move(&b->ready, &b->bar);
	b->bar_epoch = ++emu_g.epochs;
	emu_g.progress++;
}

int emu_barrier(int kind, int predicate, int line, const char *file)
{
	emu_hot.busy = 1;
	sched_become_slow();
	struct block *b = emu_g.current;
	struct fiber *f = emu_cur;
	int vote = predicate != 0;
	if (!b->bar.n) {
		b->bar_kind = kind;
		b->bar_line = line;
		b->bar_file = file;
		b->bar_acc = vote;
	} else {
		if (b->bar_kind != kind ||
		    (emu_g.strict_barriers && (b->bar_line != line || b->bar_file != file))) {
			f->state = FIBER_BARRIER;
			f->line = line;
			f->file = file;
			list_push(&b->bar, f);
			report_stuck(EMU_BARRIER_DIVERGENCE);
		}
		if (kind == EMU_BAR_COUNT)
			b->bar_acc += vote;
		else if (kind == EMU_BAR_AND)
			b->bar_acc &= vote;
		else
			b->bar_acc |= vote;
	}
	if (b->bar.n + 1 == b->live) {
		block_release_barrier(b);
	} else {
		f->state = FIBER_BARRIER;
		f->line = line;
		f->file = file;
		list_push(&b->bar, f);
		sched_next();
	}
	emu_hot.busy = 0;
	return b->bar_result;
}

/* All blocks have started or finished, and every live thread waits: let them go. */
void grid_check(void)
{
	if (!emu_g.grid_ready || emu_g.started < emu_g.blocks)
		return;
	if (emu_g.grid_ready + emu_g.finished < emu_g.blocks)
		return;
	struct block *b = emu_g.ring;
	do {
		list_move(&b->ready, &b->grid);
		b->bar_epoch = ++emu_g.epochs;
		b = b->ring;
	} while (b != emu_g.ring);
	emu_g.grid_ready = 0;
	hook_sync_op();
	emu_g.progress++;
}

void emu_grid_sync(int line, const char *file)
{
	emu_hot.busy = 1;
	if (!(emu_g.launch->flags & EMU_LAUNCH_COOPERATIVE))
		report_fail(EMU_NOT_EMULABLE, 0, line, file,
			    "grid.sync() in a launch that is not cooperative");
	if (emu_g.blocks > emu_g.residency)
		report_fail(EMU_NOT_EMULABLE, 0, line, file,
			    "grid.sync() needs all %llu blocks resident, the residency is %u",
			    (unsigned long long)emu_g.blocks, emu_g.residency);
	sched_become_slow();
	struct block *b = emu_g.current;
	emu_cur->state = FIBER_GRID;
	emu_cur->line = line;
	emu_cur->file = file;
	list_push(&b->grid, emu_cur);
	if (b->grid.n == b->live) {
		emu_g.grid_ready++;
		grid_check();
	}
	sched_go();
	emu_hot.busy = 0;
}

/* A thread has returned: whoever waited only for it may go on. */
void block_exit_thread(struct block *b, unsigned lin)
{
	struct warp *w = &b->warps[lin / EMU_WARP];
	w->exited |= 1u << (lin % EMU_WARP);
	b->live--;
	if (w->n_groups)
		warp_exit_lane(b, w);
	if (!b->live)
		return;
	if (b->bar.n == b->live)
		block_release_barrier(b);
	if (b->grid.n == b->live) {
		emu_g.grid_ready++;
		grid_check();
	}
}
