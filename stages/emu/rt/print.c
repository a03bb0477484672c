/* What device code may say or ask: printf, facts, clock, asynchronous copies.
 *
 * SPDX-License-Identifier: MIT
 *
 * Asynchronous copies happen as late as the language allows, when the thread waits for
 * them: a kernel that forgets to wait reads what was there before.
 */
#include "rt.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { MAX_COPIES = 1024 };

struct copy {
	void *to;
	const void *from;
	uintptr_t pc;
	unsigned bytes, zero;
	unsigned commit; /* number of the batch it belongs to */
};

EMU_STATE char emu_log[EMU_MAX_LOG];
EMU_STATE unsigned emu_log_bytes, emu_log_dropped;

int emu_printf(const char *format, ...)
{
	emu_hot.busy = 1;
	va_list ap;
	va_start(ap, format);
	size_t room = sizeof emu_log - emu_log_bytes;
	int n = vsnprintf(emu_log + emu_log_bytes, room, format, ap);
	va_end(ap);
	if (n > 0 && (size_t)n >= room) {
		emu_log_dropped = 1;
		n = (int)room - 1;
	}
	if (n > 0)
		emu_log_bytes += (unsigned)n;
	emu_hot.busy = 0;
	return n;
}

unsigned emu_fact(int which)
{
	switch (which) {
	case EMU_FACT_SM_COUNT:
		return script_get()->sm_count;
	case EMU_FACT_DYNAMIC_SHARED:
		return emu_g.launch->shared_bytes;
	case EMU_FACT_TOTAL_SHARED:
		return (unsigned)emu_g.shared_bytes;
	case EMU_FACT_SMID: {
		unsigned n = script_get()->sm_count;
		return n ? (unsigned)(emu_g.current->serial % n) : 0;
	}
	default:
		return 0;
	}
}

unsigned long long emu_clock(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (unsigned long long)t.tv_sec * 1000000000u + (unsigned long long)t.tv_nsec;
}

static void copy_do(const struct copy *c)
{
	unsigned zero = c->zero < c->bytes ? c->zero : c->bytes;
	hook_copy(c->to, c->from, c->bytes - zero, c->pc);
	if (zero) {
		static const char zeros[16];
		hook_copy((char *)c->to + (c->bytes - zero), zeros, zero < 16 ? zero : 16, 0);
	}
}

void emu_copy_async(void *to, const void *from, unsigned bytes, unsigned zero)
{
	struct copy c = {to, from, (uintptr_t)__builtin_return_address(0), bytes, zero, 0};
	emu_hot.busy = 1;
	sched_become_slow();
	struct fiber *f = emu_cur;
	if (!f->copies) {
		uintptr_t stack = (uintptr_t)f->stack_low - EMU_STACKS_BASE;
		char *want = (char *)EMU_COPIES_BASE +
			     stack / wipe_pools()->stack_bytes * (MAX_COPIES * sizeof c);
		void *at = mmap(want, MAX_COPIES * sizeof c, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
		if (at == MAP_FAILED && errno == EEXIST)
			at = want; /* from before a WIPE */
		if (at != want)
			report_fail(EMU_NOT_EMULABLE, c.pc, 0, NULL,
				    "no memory for asynchronous copies");
		f->copies = at;
	}
	c.commit = f->n_commits;
	if (f->n_copies < MAX_COPIES)
		f->copies[f->n_copies++] = c;
	else
		copy_do(&c); /* early is allowed too */
	emu_hot.busy = 0;
}

void emu_copy_commit(void)
{
	emu_cur->n_commits++;
}

/* Completes all batches but the last `pending` committed ones. */
void emu_copy_wait(unsigned pending)
{
	emu_hot.busy = 1;
	struct fiber *f = emu_cur;
	unsigned done = f->n_commits > pending ? f->n_commits - pending : 0, keep = 0;
	for (unsigned i = 0; i < f->n_copies; i++) {
		if (f->copies[i].commit < done)
			copy_do(&f->copies[i]);
		else
			f->copies[keep++] = f->copies[i];
	}
	f->n_copies = keep;
	emu_hot.busy = 0;
}

void emu_trap(const char *what, int line, const char *file)
{
	emu_hot.busy = 1;
	report_fail(EMU_TRAP, (uintptr_t)__builtin_return_address(0), line, file, "%s", what);
}

void emu_not_emulable(const char *what, int line, const char *file)
{
	emu_hot.busy = 1;
	report_fail(EMU_NOT_EMULABLE, (uintptr_t)__builtin_return_address(0), line, file, "%s",
		    what);
}
