/* Inside of the emulator runtime: fibers, blocks, the launch in progress.
 *
 * SPDX-License-Identifier: MIT
 *
 * One OS thread. A CUDA thread runs on a fiber. Threads of a block run one after another on
 * one fiber until one has to wait: its fiber is parked with its stack, and a pooled one goes
 * on with the next thread. Blocks do the same to each other: a block that can only wait makes
 * room for the next resident one. Functions that end in _fail write the last reply and exit.
 */
#ifndef EMU_RT_H
#define EMU_RT_H

#include "../include/emu_abi.h"
#include "../protocol.h"
#include <stddef.h>
#include <stdint.h>

enum {
	EMU_TICK_US = 2000,
	EMU_WARP = 32,
	EMU_MAX_THREADS = 1024,
	EMU_MAX_WARPS = EMU_MAX_THREADS / EMU_WARP
};

/* Fiber stacks grow into one region of addresses; in the sanitize build its shadow lives at
 * (address >> 3) + EMU_SHADOW_OFFSET, the number given to -fasan-shadow-offset. */
#define EMU_STACKS_BASE 0x2000000000ull
#define EMU_STACKS_BYTES 0x0800000000ull
#define EMU_SHADOW_OFFSET 0x1000000000ull
/* The checkpoint (wipe.c), pending asynchronous copies, records and saved shared memory of blocks. */
#define EMU_SEALED_BASE 0x1200000000ull
#define EMU_COPIES_BASE 0x1220000000ull
#define EMU_COPIES_BYTES 0x0080000000ull
#define EMU_BLOCKS_BASE 0x1600000000ull
#define EMU_CLEAR_MOST (256ull << 20) /* pools up to this size are cleared in place */

/* State of the runtime that a launch may change. Whatever lies outside must stay as MAP left it. */
#define EMU_STATE __attribute__((section("emu_state")))

enum fiber_state {
	FIBER_IDLE,
	FIBER_RUN,
	FIBER_READY,
	FIBER_BARRIER,
	FIBER_WARP,
	FIBER_ACTIVEMASK,
	FIBER_GRID
};

enum { FIBER_STATES = 8 };

struct fiber {
	/* the first cache line: all that a switch touches */
	void *sp;
	struct fiber *next;	     /* in whichever list the state says */
	const struct emu_slot *slot; /* NULL: runs no thread */
	struct block *block;
	enum fiber_state state; /* set when it waits; what is in a ready list is ready */
	int line;
	const char *file;
	uint64_t value; /* of a warp operation: contribution, then result */
	int kind;	/* of the collective it waits in */
	unsigned mask;
	/* the rest */
	unsigned source;
	unsigned next_state;
	uint32_t states[FIBER_STATES]; /* registers at recent ticks, see tick.c */
	unsigned n_copies, n_commits;
	struct copy *copies; /* pending asynchronous copies, made on first use */
	char *stack_low, *stack_high;
	struct fiber *all; /* every fiber ever made */
};

struct list {
	struct fiber *head, *tail;
	unsigned n;
};

struct group {
	unsigned mask, arrived;
	int kind;
};

struct warp {
	unsigned exited; /* or never existed */
	unsigned n_groups;
	struct group groups[EMU_WARP];
	struct fiber *lane[EMU_WARP];
	unsigned collectives; /* completed; for the race check */
};

enum image_state { IMAGE_NEW, IMAGE_SAVED };

struct block {
	struct block *ring, *ring_back; /* resident blocks */
	struct list ready, yielded, masks, bar, grid;
	const struct emu_slot *next; /* first thread not started, while not current */
	unsigned live;		     /* threads not finished, whether started or not */
	int slow;
	int bar_kind, bar_line, bar_acc, bar_result;
	const char *bar_file;
	unsigned bar_epoch;
	enum image_state image_state;
	char *image; /* its shared memory while another block runs */
	struct emu_u3 index;
	uint64_t serial; /* in start order */
	struct warp warps[EMU_MAX_WARPS];
};

struct buffer {
	uint64_t base, bytes;
	int writable;
};

struct launch_state {
	const struct emu_launch *launch;
	const struct emu_entry *entry;
	unsigned index; /* of the launch, UINT32_MAX outside one */
	void **args;
	unsigned threads, warps;
	uint64_t blocks, started, finished;
	unsigned resident, residency;
	struct emu_slot order[EMU_MAX_THREADS];
	size_t shared_bytes; /* static + dynamic: what is poisoned, saved, checked */
	uint64_t poison;
	int shared_as_is; /* not filled with it at block start */
	struct block *current;
	struct block *ring; /* some resident block */
	struct block *image_owner;
	struct block *free_blocks;
	unsigned grid_ready; /* blocks whose live threads all wait at grid.sync() */
	unsigned epochs;     /* barrier epochs given out, over all blocks */
	uint64_t progress, switches, block_switches;
	uint64_t order_seed;
	unsigned order_mode;
	int strict_barriers;
	volatile int expired; /* EMU_TIME_LIMIT or EMU_DEADLOCK to be reported */
};

extern struct launch_state emu_g;
extern struct fiber *emu_cur;
extern struct fiber emu_main_fiber;
extern struct emu_slot emu_thread;
extern struct emu_u3 emu_blockIdx, emu_blockDim, emu_gridDim;
extern struct buffer emu_buffers[EMU_MAX_BUFFERS];
extern unsigned emu_n_buffers;
extern struct buffer emu_arguments; /* of all launches */
extern unsigned emu_notes;
extern uint64_t emu_ticks; /* of the RUN in progress */

/* markers of the candidate's thread-local block, see tls_begin.c and tls_end.c */
extern _Thread_local char emu_tls_begin[];
extern _Thread_local char emu_dynamic_shared[];

/* switch.c */
void emu_switch(void **save_sp, void *load_sp);
void *emu_stack_prepare(char *top, void (*entry)(void));

/* sched.c */
int sched_run(const struct emu_launch *l, unsigned index, void **args, unsigned residency,
	      uint64_t poison);
void sched_become_slow(void);
void sched_wait(enum fiber_state state, struct list *list, int line, const char *file);
void sched_go(void);
void sched_preempt(void);
void list_move(struct list *to, struct list *from);

static inline void list_push(struct list *l, struct fiber *f)
{
	f->next = NULL;
	if (l->tail)
		l->tail->next = f;
	else
		l->head = f;
	l->tail = f;
	l->n++;
}

static inline struct fiber *list_pop(struct list *l)
{
	struct fiber *f = l->head;
	l->head = f->next;
	if (!l->head)
		l->tail = NULL;
	l->n--;
	return f;
}

/* Runs f in place of the current fiber, which is listed somewhere. */
static inline void sched_switch(struct fiber *f)
{
	struct fiber *from = emu_cur;
	if (f == from)
		return;
	emu_cur = f;
	emu_g.switches++;
	if (f->slot)
		emu_thread = *f->slot;
	emu_switch(&from->sp, f->sp);
}

/* The current fiber is listed as waiting: another thread's turn, of this block if one can. */
static inline void sched_next(void)
{
	struct list *ready = &emu_g.current->ready;
	if (__builtin_expect(ready->head && !emu_g.expired, 1))
		sched_switch(list_pop(ready));
	else
		sched_go();
}

/* block.c: what belongs to one block */
void block_start(struct block *b, uint64_t serial);
void block_exit_thread(struct block *b, unsigned lin);
void block_release_barrier(struct block *b);
void grid_check(void);
struct block *block_make(void);
void block_wipe(void);

/* shared.c */
void shared_enter(struct block *b);

/* warp.c */
void warp_exit_lane(struct block *b, struct warp *w);
int warp_resolve_masks(struct block *b);

/* stack.c */
struct fiber *fiber_get(void (*entry)(void));
void fiber_put(struct fiber *f);
extern struct fiber *emu_all_fibers;
const struct fiber *fiber_of_guard(uintptr_t address);

void stack_wipe(void);

/* wipe.c: the process as it was after MAP. What is here is read-only for a kernel. */
struct wipe_pools {
	unsigned fibers, blocks, stack_bytes;
};
const struct wipe_pools *wipe_pools(void);
void wipe_pools_set(unsigned fibers, unsigned blocks);
void wipe_init(void);
void wipe_seal(unsigned stack_bytes);
void wipe_clear(char *low, char *high, int keep); /* zero; mapped pages stay if keep */
void wipe_back(void) __attribute__((noreturn));

/* script.c */
const char *script_map(void); /* NULL or what is wrong */
const char *script_args(void); /* the same; after script_map */
const struct emu_script *script_get(void);
void script_run(const struct emu_command *c);

/* report.c */
void report_install(void);
void report_fail(uint32_t status, uintptr_t pc, int line, const char *file, const char *format, ...)
    __attribute__((noreturn, format(printf, 5, 6)));
void report_note(uintptr_t pc, int line, const char *file, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void report_stuck(uint32_t status) __attribute__((noreturn));
void report_reply(uint32_t status, const char *text);
const char *report_place(uintptr_t address, char *out, size_t room);
void report_io(int in, int out);

/* tick.c */
void tick_install(void);
void tick_begin(void); /* before each run */

/* lines.c */
int lines_find(uintptr_t pc, const char **file);

/* print.c */
extern char emu_log[EMU_MAX_LOG];
extern unsigned emu_log_bytes, emu_log_dropped;

/* hooks that only some builds fill; check.c, race.c, or nohooks.c */
extern const char emu_build_name[];
void hook_init(void);
void hook_wipe(void); /* forget all runs since hook_init */
void hook_fiber_stack(char *low, char *high); /* addresses that stacks will use */
void hook_sync_op(void);		      /* an atomic, fence or flag access may order things */
void hook_copy(void *to, const void *from, size_t bytes, uintptr_t pc);

#endif
