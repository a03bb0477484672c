/* The timer: takes the processor from a thread that keeps it, and sees when nothing moves.
 *
 * SPDX-License-Identifier: MIT
 *
 * Progress is a thread that ends or a barrier that completes. Without any for the stall time
 * the launch is given up. A thread whose registers are other ones at each tick computes rather
 * than waits: while such ticks are frequent, the stall time is ten times as long.
 */
#include "rt.h"
#include <signal.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>

enum { DEFAULT_STALL_MS = 5000, PATIENCE = 10, CHECK_TICKS = 16 };

EMU_STATE uint64_t emu_ticks;

static uint64_t cpu_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* Of the general registers without the program counter: a loop that waits has few states. */
static uint32_t registers_hash(const ucontext_t *u)
{
	uint64_t h = 0;
#if defined(__x86_64__)
	for (int r = REG_R8; r <= REG_RSP; r++)
		h = (h ^ (uint64_t)u->uc_mcontext.gregs[r]) * 0x9e3779b97f4a7c15u;
#elif defined(__aarch64__)
	for (int r = 0; r < 31; r++)
		h = (h ^ u->uc_mcontext.regs[r]) * 0x9e3779b97f4a7c15u;
#else
	(void)u;
#endif
	return (uint32_t)(h >> 32) | 1;
}

static int computes(struct fiber *f, const ucontext_t *u)
{
	uint32_t h = registers_hash(u);
	int seen = 0;
	for (int i = 0; i < FIBER_STATES; i++)
		seen |= f->states[i] == h;
	if (!seen)
		f->states[f->next_state++ % FIBER_STATES] = h;
	return !seen;
}

/* Since the last progress: when that was seen, and the ticks from then on. */
static EMU_STATE struct {
	uint64_t seen, ms, ticks, computing;
} since;

/* A run begins. What an earlier one left is no stall of this: in a process that was forked from it even the
 * clock is another, which lies before that. */
void tick_begin(void)
{
	emu_ticks = 0;
	since.seen = emu_g.progress;
	since.ms = since.ticks = since.computing = 0;
}

static void watch(const ucontext_t *u)
{
	const struct emu_script *s = script_get();
	if (since.seen != emu_g.progress) {
		since.seen = emu_g.progress;
		since.ticks = since.ms = since.computing = 0;
		return;
	}
	since.computing += !emu_hot.busy && computes(emu_cur, u);
	if (++since.ticks % CHECK_TICKS)
		return;
	uint64_t now = cpu_ms(), limit = s->stall_ms ? s->stall_ms : DEFAULT_STALL_MS;
	if (since.computing * 4 > since.ticks)
		limit *= PATIENCE;
	if (!since.ms)
		since.ms = now;
	else if (now > since.ms && now - since.ms > limit)
		emu_g.expired = EMU_DEADLOCK;
}

static void on_tick(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)info;
	const struct emu_script *s = script_get();
	if (emu_g.index == UINT32_MAX)
		return;
	emu_ticks++;
	watch(context);
	if (s->limit_ms && emu_ticks * EMU_TICK_US / 1000 > s->limit_ms)
		emu_g.expired = EMU_TIME_LIMIT;
	if (!emu_hot.busy)
		sched_preempt();
}

/* On the thread's own stack, and not blocked while the thread is away. */
void tick_install(void)
{
	struct sigaction t = {.sa_flags = SA_NODEFER | SA_RESTART | SA_SIGINFO};
	t.sa_sigaction = on_tick;
	sigaction(SIGALRM, &t, NULL);
}
