/* Fibers and their stacks: made when needed, pooled, never given back.
 *
 * SPDX-License-Identifier: MIT
 *
 * Stacks lie side by side from EMU_STACKS_BASE, a guard page below each. The fiber's own record
 * sits at the top of its stack, and the record's place within a page differs from one fiber to the
 * next: a thousand stacks that all start at the same offset would fight for few cache sets.
 */
#include "rt.h"
#include <string.h>
#include <sys/mman.h>

enum { MAX_GUARDED = 24576, CHUNK = 64, GUARD_BYTES = 4096, COLOURS = 32, COLOUR_BYTES = 128 };

EMU_STATE struct fiber *emu_all_fibers;
static EMU_STATE struct fiber *pool;

static size_t stack_bytes(void)
{
	return wipe_pools()->stack_bytes;
}

static char *stack_low(unsigned i)
{
	return (char *)EMU_STACKS_BASE + (size_t)i * stack_bytes() + GUARD_BYTES;
}

static char *stack_high(unsigned i)
{
	return (char *)EMU_STACKS_BASE + (size_t)(i + 1) * stack_bytes();
}

/* a process may have some 65000 mappings, and each guard page makes two */
static char *stack_open(unsigned i)
{
	return stack_low(i) - (i < MAX_GUARDED ? 0 : GUARD_BYTES);
}

/* The record of fiber i, not yet run. */
static struct fiber *fiber_setup(unsigned i)
{
	size_t colour = (i % COLOURS) * COLOUR_BYTES;
	struct fiber *f = (void *)(stack_high(i) - sizeof(struct fiber) - colour - 64);
	f = (void *)((uintptr_t)f & ~(uintptr_t)63);
	memset(f, 0, sizeof *f);
	f->stack_low = stack_low(i);
	f->stack_high = stack_high(i);
	f->all = emu_all_fibers;
	emu_all_fibers = f;
	return f;
}

static struct fiber *fiber_make(void)
{
	unsigned made = wipe_pools()->fibers;
	size_t bytes = stack_bytes();
	if (made % CHUNK == 0) {
		char *want = (char *)EMU_STACKS_BASE + (size_t)made * bytes;
		void *at = MAP_FAILED;
		if ((uint64_t)(made + CHUNK) * bytes <= EMU_STACKS_BYTES)
			at = mmap(want, (size_t)CHUNK * bytes, PROT_NONE,
				  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE,
				  -1, 0);
		if (at != want)
			report_fail(EMU_NOT_EMULABLE, 0, 0, NULL,
				    "no address space for %u waiting threads", made + CHUNK);
		hook_fiber_stack(want, want + (size_t)CHUNK * bytes);
	}
	char *open = stack_open(made);
	if (mprotect(open, (size_t)(stack_high(made) - open), PROT_READ | PROT_WRITE))
		report_fail(EMU_NOT_EMULABLE, 0, 0, NULL,
			    "no memory for the stack of waiting thread %u", made);
	wipe_pools_set(made + 1, wipe_pools()->blocks);
	return fiber_setup(made);
}

/* All fibers are idle with empty stacks. */
void stack_wipe(void)
{
	int few = wipe_pools()->fibers * stack_bytes() <= EMU_CLEAR_MOST;
	pool = emu_all_fibers = NULL;
	for (unsigned i = wipe_pools()->fibers; i-- > 0;) {
		char *open = stack_open(i), *high = stack_high(i);
		wipe_clear(open, high, few);
		struct fiber *f = fiber_setup(i);
		f->next = pool;
		pool = f;
	}
}

struct fiber *fiber_get(void (*entry)(void))
{
	struct fiber *f = pool;
	if (f) {
		pool = f->next;
	} else {
		f = fiber_make();
	}
	if (!f->sp) /* its first time, or the first since a WIPE */
		f->sp = emu_stack_prepare((char *)f, entry);
	f->next = NULL;
	f->slot = NULL;
	f->state = FIBER_RUN;
	f->n_copies = f->n_commits = 0;
	return f;
}

void fiber_put(struct fiber *f)
{
	f->state = FIBER_IDLE;
	f->slot = NULL;
	f->block = NULL;
	f->next = pool;
	pool = f;
}

const struct fiber *fiber_of_guard(uintptr_t address)
{
	for (const struct fiber *f = emu_all_fibers; f; f = f->all) {
		uintptr_t low = (uintptr_t)f->stack_low;
		if (address < low && address >= low - GUARD_BYTES)
			return f;
	}
	return NULL;
}
