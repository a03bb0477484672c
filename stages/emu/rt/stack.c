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

#ifdef EMU_CHECK
enum { STACK_KIB = 256 };
#else
enum { STACK_KIB = 64 };
#endif
enum { MAX_GUARDED = 24576, CHUNK = 64, GUARD_BYTES = 4096, COLOURS = 32, COLOUR_BYTES = 128 };

struct fiber *emu_all_fibers;
static size_t stack_bytes; /* settled with the first one */
static struct fiber *pool;
static unsigned made;

static struct fiber *fiber_make(void)
{
	if (!stack_bytes) {
		unsigned kib = script_get()->stack_kib;
		stack_bytes = (size_t)(kib ? kib : STACK_KIB) * 1024;
	}
	if (made % CHUNK == 0) {
		char *want = (char *)EMU_STACKS_BASE + (size_t)made * stack_bytes;
		void *at = MAP_FAILED;
		if ((uint64_t)(made + CHUNK) * stack_bytes <= EMU_STACKS_BYTES)
			at = mmap(want, (size_t)CHUNK * stack_bytes, PROT_NONE,
				  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE,
				  -1, 0);
		if (at != want)
			report_fail(EMU_NOT_EMULABLE, 0, 0, NULL,
				    "no address space for %u waiting threads", made + CHUNK);
		hook_fiber_stack(want, want + (size_t)CHUNK * stack_bytes);
	}
	/* a process may have some 65000 mappings, and each guard page makes two */
	int guarded = made < MAX_GUARDED;
	char *region = (char *)EMU_STACKS_BASE;
	char *low = region + (size_t)made * stack_bytes + GUARD_BYTES;
	char *high = low + stack_bytes - GUARD_BYTES;
	char *open = guarded ? low : low - GUARD_BYTES;
	if (mprotect(open, (size_t)(high - open), PROT_READ | PROT_WRITE))
		report_fail(EMU_NOT_EMULABLE, 0, 0, NULL,
			    "no memory for the stack of waiting thread %u", made);
	size_t colour = (made % COLOURS) * COLOUR_BYTES;
	struct fiber *f = (void *)(high - sizeof(struct fiber) - colour - 64);
	f = (void *)((uintptr_t)f & ~(uintptr_t)63);
	memset(f, 0, sizeof *f);
	f->stack_low = low;
	f->stack_high = high;
	f->all = emu_all_fibers;
	emu_all_fibers = f;
	made++;
	return f;
}

struct fiber *fiber_get(void (*entry)(void))
{
	struct fiber *f = pool;
	if (f) {
		pool = f->next;
	} else {
		f = fiber_make();
		f->sp = emu_stack_prepare((char *)f, entry);
	}
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
