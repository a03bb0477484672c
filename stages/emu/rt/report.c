/* Replies, and faults told in kernel terms.
 *
 * SPDX-License-Identifier: MIT
 *
 * A report reads: kernel 'NAME', block (x,y,z), thread (x,y,z), FILE:LINE: what. Everything
 * here may run in a signal handler on the alternate stack.
 */
#include "rt.h"
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

EMU_STATE unsigned emu_notes;

static int fd_out = 4;
static EMU_STATE char note_text[1024];
static EMU_STATE size_t note_bytes;

void report_io(int in, int out)
{
	(void)in;
	fd_out = out;
}

static void write_all(const void *p, size_t n)
{
	while (n) {
		ssize_t w = write(fd_out, p, n);
		if (w <= 0)
			_exit(1);
		p = (const char *)p + w;
		n -= (size_t)w;
	}
}

static void reply_send(uint32_t status, int line, const char *what)
{
	static EMU_STATE char all[sizeof(struct emu_reply) + EMU_MAX_TEXT + EMU_MAX_LOG];
	struct emu_reply r = {.magic = EMU_MAGIC, .status = status, .launch = emu_g.index};
	size_t n = strlen(what);
	size_t notes = status == EMU_OK ? note_bytes : 0;
	if (n > EMU_MAX_TEXT)
		n = EMU_MAX_TEXT;
	if (notes > EMU_MAX_TEXT - n)
		notes = EMU_MAX_TEXT - n;
	if (emu_g.index != UINT32_MAX) {
		memcpy(r.block, &emu_blockIdx, sizeof r.block);
		memcpy(r.thread, &emu_thread, sizeof r.thread);
	}
	r.line = line > 0 ? (uint32_t)line : 0;
	r.text_bytes = (uint32_t)(n + notes);
	r.log_bytes = emu_log_bytes;
	r.log_dropped = emu_log_dropped;
	r.notes = emu_notes;
	r.switches = emu_g.switches;
	r.block_switches = emu_g.block_switches;
	memcpy(all, &r, sizeof r);
	memcpy(all + sizeof r, what, n);
	memcpy(all + sizeof r + n, note_text, notes);
	memcpy(all + sizeof r + n + notes, emu_log, emu_log_bytes);
	write_all(all, sizeof r + n + notes + emu_log_bytes);
	note_bytes = 0;
}

void report_reply(uint32_t status, const char *what)
{
	reply_send(status, 0, what);
}

static size_t describe(char *out, size_t room, int line, const char *file)
{
	int n = 0;
	if (emu_g.index != UINT32_MAX)
		n = snprintf(out, room, "kernel '%s', block (%u,%u,%u), thread (%u,%u,%u), ",
			     emu_g.entry->name, emu_blockIdx.x, emu_blockIdx.y, emu_blockIdx.z,
			     emu_thread.x, emu_thread.y, emu_thread.z);
	if (line)
		n += snprintf(out + n, room - (size_t)n, "%s:%d: ", file ? file : "?", line);
	else if (n)
		n += snprintf(out + n, room - (size_t)n, "unknown line: ");
	return (size_t)n;
}

static void place(uintptr_t pc, int *line, const char **file)
{
	size_t n = *file ? strlen(*file) : 0;
	if (pc && (!*line || (n > 2 && !strcmp(*file + n - 2, ".h")))) {
		const char *f;
		int l = lines_find(pc, &f);
		if (l) {
			*line = l;
			*file = f;
		}
	}
}

void report_fail(uint32_t status, uintptr_t pc, int line, const char *file, const char *format, ...)
{
	static EMU_STATE char buf[EMU_MAX_TEXT];
	emu_hot.busy = 1;
	place(pc, &line, &file);
	size_t n = describe(buf, sizeof buf, line, file);
	va_list ap;
	va_start(ap, format);
	int m = vsnprintf(buf + n, sizeof buf - n - 1, format, ap);
	va_end(ap);
	n += m > 0 ? (size_t)m : 0;
	if (n > sizeof buf - 2)
		n = sizeof buf - 2;
	buf[n] = '\n';
	buf[n + 1] = 0;
	reply_send(status, line, buf);
	_exit(1);
}

void report_note(uintptr_t pc, int line, const char *file, const char *format, ...)
{
	if (emu_notes++ >= 4)
		return;
	place(pc, &line, &file);
	char buf[256];
	size_t n = describe(buf, sizeof buf, line, file);
	va_list ap;
	va_start(ap, format);
	int m = vsnprintf(buf + n, sizeof buf - n - 1, format, ap);
	va_end(ap);
	n += m > 0 ? (size_t)m : 0;
	if (n > sizeof buf - 2)
		n = sizeof buf - 2;
	buf[n++] = '\n';
	if (note_bytes + n <= sizeof note_text) {
		memcpy(note_text + note_bytes, buf, n);
		note_bytes += n;
	}
}

static const char *waits_at(const struct fiber *f)
{
	switch (f->state) {
	case FIBER_BARRIER:
		return "waits at __syncthreads()";
	case FIBER_WARP:
		return f->kind == EMU_WARP_SYNC ? "waits at __syncwarp()"
						: "waits at a warp operation";
	case FIBER_GRID:
		return "waits at grid.sync()";
	case FIBER_READY:
		return "spins or computes";
	default:
		return "waits";
	}
}

/* Nothing can go on, or a time limit has passed. Names one thread for each place of waiting
 * in one block. */
void report_stuck(uint32_t status)
{
	static EMU_STATE char buf[EMU_MAX_TEXT];
	const struct fiber *first = NULL, *other = NULL;
	struct block *b = emu_g.current ? emu_g.current : emu_g.ring;
	unsigned waiting_grid = 0, waiting = 0;
	if (b && status != EMU_TIME_LIMIT && status != EMU_DEADLOCK) {
		struct block *c =
		    b; /* a block with a waiting thread that is not at the grid barrier */
		do {
			if (c->bar.n || (c->live > c->grid.n && c->slow)) {
				b = c;
				break;
			}
			c = c->ring;
		} while (c != b);
	}
	for (struct fiber *f = b ? b->ready.head : NULL; f; f = f->next)
		f->state = FIBER_READY;
	for (const struct fiber *f = emu_all_fibers; f; f = f->all) {
		if (f->block != b || !f->slot || f->state == FIBER_IDLE)
			continue;
		waiting++;
		waiting_grid += f->state == FIBER_GRID;
		if (!first || f->slot->lin < first->slot->lin)
			first = f;
	}
	for (const struct fiber *f = emu_all_fibers; first && f; f = f->all) {
		if (f->block != b || !f->slot || f->state == FIBER_IDLE)
			continue;
		if ((f->line != first->line || f->state != first->state ||
		     f->mask != first->mask) &&
		    (!other || f->slot->lin < other->slot->lin))
			other = f;
	}
	const char *why = "no thread can go on";
	char more[128];
	if (status == EMU_TIME_LIMIT) {
		why = "the time limit passed";
	} else if (emu_g.started < emu_g.blocks &&
		   (status == EMU_DEADLOCK || waiting_grid == waiting)) {
		status = EMU_NOT_EMULABLE;
		snprintf(more, sizeof more,
			 "no progress, and %llu of %llu blocks cannot start beyond residency %u",
			 (unsigned long long)(emu_g.blocks - emu_g.started),
			 (unsigned long long)emu_g.blocks, emu_g.residency);
		why = more;
	} else if (status == EMU_DEADLOCK) {
		why = "no thread has made progress for the stall time";
	} else if (waiting_grid == waiting) {
		status = EMU_DEADLOCK;
		why = "threads wait at grid.sync() for blocks that have ended";
	} else if (other) {
		why = "threads of one block wait at different places";
	} else if (first && first->state == FIBER_WARP) {
		why = "a warp operation waits for lanes of its mask that never come";
	}
	if (first) {
		emu_blockIdx = b->index;
		emu_thread = *first->slot;
	}
	int line = first ? first->line : 0;
	size_t n = describe(buf, sizeof buf, line, first ? first->file : NULL);
	n += (size_t)snprintf(buf + n, sizeof buf - n, "%s", why);
	const struct fiber *both[2] = {first, other};
	for (int i = 0; i < 2 && both[i]; i++) {
		const struct fiber *f = both[i];
		n += (size_t)snprintf(buf + n, sizeof buf - n, "; thread (%u,%u,%u) %s", f->slot->x,
				      f->slot->y, f->slot->z, waits_at(f));
		if (f->line)
			n += (size_t)snprintf(buf + n, sizeof buf - n, " %s:%d", f->file, f->line);
		if (f->state == FIBER_WARP)
			n +=
			    (size_t)snprintf(buf + n, sizeof buf - n, " with mask 0x%08x", f->mask);
	}
	snprintf(buf + n, sizeof buf - n, "\n");
	reply_send(status, line, buf);
	_exit(1);
}

/* Says where an address lies, in terms of the plan's buffers. */
const char *report_place(uintptr_t a, char *out, size_t room)
{
	const struct buffer *best = NULL;
	uint64_t best_gap = 1 << 20;
	const struct fiber *f = fiber_of_guard(a);
	if (a < 4096) {
		snprintf(out, room, "address 0x%llx, a null pointer", (unsigned long long)a);
		return out;
	}
	if (f) {
		snprintf(out, room, "a stack overflow (local arrays or recursion beyond %llu KiB)",
			 (unsigned long long)(f->stack_high - f->stack_low) / 1024);
		return out;
	}
	uintptr_t shared = (uintptr_t)emu_tls_begin;
	if (a >= shared && a < (uintptr_t)emu_dynamic_shared + EMU_MAX_SHARED) {
		snprintf(out, room, "shared memory, byte %lld of %llu dynamic ones",
			 (long long)(a - (uintptr_t)emu_dynamic_shared),
			 (unsigned long long)(emu_g.launch ? emu_g.launch->shared_bytes : 0));
		return out;
	}
	for (unsigned i = 0; i < emu_n_buffers; i++) {
		const struct buffer *b = &emu_buffers[i];
		uint64_t gap = a < b->base		 ? b->base - a
			       : a >= b->base + b->bytes ? a - b->base - b->bytes
							 : 0;
		if (gap < best_gap) {
			best = b;
			best_gap = gap;
		}
	}
	if (!best)
		snprintf(out, room, "address 0x%llx, far from every buffer", (unsigned long long)a);
	else if (a < best->base)
		snprintf(out, room, "%llu bytes before buffer %u (%llu bytes)",
			 (unsigned long long)best_gap, (unsigned)(best - emu_buffers),
			 (unsigned long long)best->bytes);
	else if (a >= best->base + best->bytes)
		snprintf(out, room, "%llu bytes past the end of buffer %u (%llu bytes)",
			 (unsigned long long)best_gap, (unsigned)(best - emu_buffers),
			 (unsigned long long)best->bytes);
	else
		snprintf(out, room, "byte %llu of buffer %u (%llu bytes%s)",
			 (unsigned long long)(a - best->base), (unsigned)(best - emu_buffers),
			 (unsigned long long)best->bytes, best->writable ? "" : ", read-only");
	return out;
}

static uintptr_t context_pc(const ucontext_t *u, uintptr_t *sp)
{
#if defined(__x86_64__)
	*sp = (uintptr_t)u->uc_mcontext.gregs[REG_RSP];
	return (uintptr_t)u->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
	*sp = (uintptr_t)u->uc_mcontext.sp;
	return (uintptr_t)u->uc_mcontext.pc;
#else
	(void)u;
	*sp = 0;
	return 0;
#endif
}

static void on_fault(int sig, siginfo_t *info, void *context)
{
	emu_hot.busy = 1; /* no preemption on the way out */
	uintptr_t sp, pc = context_pc(context, &sp);
	uintptr_t a = (uintptr_t)info->si_addr;
	const char *file;
	char where[160];
	/* in a called library function: the nearest return address into the candidate */
	const uintptr_t *low = (const uintptr_t *)(sp & ~(uintptr_t)7);
	const struct fiber *f = emu_cur;
	if (!lines_find(pc, &file) && (uintptr_t)low >= (uintptr_t)f->stack_low) {
		for (int i = 0; i < 256 && (uintptr_t)(low + i + 1) < (uintptr_t)f->stack_high; i++)
			if (lines_find(low[i] - 1, &file)) {
				pc = low[i] - 1;
				break;
			}
	}
	if (sig == SIGFPE)
		report_fail(EMU_FAULT_FPE, pc, 0, NULL, "integer division by zero or overflow");
	if (sig == SIGILL || sig == SIGTRAP)
		report_fail(EMU_TRAP, pc, 0, NULL, "trap or unreachable code");
	report_fail(EMU_FAULT_SEGV, pc, 0, NULL, "bad memory access at %s",
		    report_place(a, where, sizeof where));
}

void report_install(void)
{
	static EMU_STATE char stack[64 * 1024] __attribute__((aligned(16)));
	stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
	sigaltstack(&alternate, NULL);
	struct sigaction a = {.sa_flags = SA_SIGINFO | SA_ONSTACK};
	a.sa_sigaction = on_fault;
	/* A tick that waits while the fault is delivered would run before the first line of on_fault, and leave for
	 * another thread with faults blocked: whose own then kills the process without a word. */
	sigaddset(&a.sa_mask, SIGALRM);
	static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
	for (unsigned i = 0; i < sizeof faults / sizeof *faults; i++)
		sigaction(faults[i], &a, NULL);
}
