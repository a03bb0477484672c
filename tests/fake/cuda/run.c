/*
 * run.c - runs the host build of a kernel, with the scheduler of the emulated device
 * (stages/emu/rt): blocks, barriers, warps. Stands in for the parts of that runtime which speak to a
 * parent process.
 *
 * SPDX-License-Identifier: MIT
 */
#include "../../../stages/emu/rt/rt.h"

#include "fake.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* sched.c takes entry 0 of the image's table: here that is the kernel of the launch. */
static struct emu_entry entry[1];
extern const struct emu_entry emu_entries[1] __attribute__((alias("entry")));
_Thread_local char emu_dynamic_shared[EMU_MAX_SHARED] __attribute__((aligned(1024)));
_Thread_local char emu_tls_begin[8] __attribute__((aligned(8)));
const char emu_build_name[] = "fake";

static struct wipe_pools pools = {0, 0, 128 << 10};

const struct wipe_pools *wipe_pools(void)
{
	return &pools;
}
void wipe_pools_set(unsigned fibers, unsigned blocks)
{
	pools.fibers = fibers;
	pools.blocks = blocks;
}
void wipe_clear(char *low, char *high, int keep)
{
	(void)keep;
	memset(low, 0, (size_t)(high - low));
}

static void stop(const char *format, va_list ap) __attribute__((__noreturn__));
static void stop(const char *format, va_list ap)
{
	char text[512];
	vsnprintf(text, sizeof text, format, ap);
	fake_say("%s", text);
	fake_fault(FAKE_LAUNCH_FAILED);
}

void report_fail(uint32_t status, uintptr_t pc, int line, const char *file, const char *format, ...)
{
	va_list ap;
	(void)status;
	(void)pc;
	(void)line;
	(void)file;
	va_start(ap, format);
	stop(format, ap);
}
void report_stuck(uint32_t status)
{
	report_fail(status, 0, 0, NULL, "threads wait for each other");
}
void hook_sync_op(void)
{
}
void hook_fiber_stack(char *low, char *high)
{
	(void)low;
	(void)high;
}

/* --- what device code may call --- */

int emu_printf(const char *format, ...)
{
	va_list ap;
	va_start(ap, format);
	int n = vfprintf(stderr, format, ap);
	va_end(ap);
	return n;
}
unsigned emu_fact(int which)
{
	return which == EMU_FACT_SM_COUNT ? 132 : which == EMU_FACT_DYNAMIC_SHARED ? emu_g.launch->shared_bytes :
						  which == EMU_FACT_TOTAL_SHARED ? emu_g.launch->shared_bytes : 0;
}
unsigned long long emu_clock(void)
{
	return fake_clock();
}
void emu_copy_async(void *to, const void *from, unsigned bytes, unsigned zero)
{
	memcpy(to, from, bytes - zero);
	memset((char *)to + bytes - zero, 0, zero);
}
void emu_copy_commit(void)
{
}
void emu_copy_wait(unsigned pending)
{
	(void)pending;
}
void emu_trap(const char *what, int line, const char *file)
{
	report_fail(0, 0, line, file, "%s", what);
}
void emu_not_emulable(const char *what, int line, const char *file)
{
	report_fail(0, 0, line, file, "%s does not run here", what);
}
/* kernels/host_cuda.h: __nanosleep takes its time on the device's clock alone. */
void fake_nanosleep(unsigned ns);
void fake_nanosleep(unsigned ns)
{
	fake_clock_add(ns);
}

/* --- a launch --- */

/* Each module has its own variables; the host build has one set. */
static void globals(const struct CUmod_st *m, int in)
{
	for (int i = 0; i < m->nobjects; i++) {
		size_t n = 0;
		void *host = fake_host_object(m->object[i].name, &n);
		void *own = (void *)(uintptr_t)m->object[i].at;
		if (host && n == m->object[i].bytes)
			memcpy(in ? host : own, in ? own : host, n);
	}
}

/* Where the module of the running kernel keeps a variable; kernels/host_cuda.h calls it. */
static const struct CUmod_st *running;
void *fake_own(const void *host);
void *fake_own(const void *host)
{
	for (int i = 0; i < running->nobjects; i++) {
		size_t n = 0;
		if (fake_host_object(running->object[i].name, &n) == host)
			return (void *)(uintptr_t)running->object[i].at;
	}
	return NULL;
}

static void order(const uint32_t block[3])
{
	unsigned n = 0;
	for (unsigned z = 0; z < block[2]; z++)
		for (unsigned y = 0; y < block[1]; y++)
			for (unsigned x = 0; x < block[0]; x++, n++)
				emu_g.order[n] = (struct emu_slot){x, y, z, n};
}

/* The worker's own kernels around a rep, without a call for each of some 400,000 threads. Reading and
 * writing takes the time that an H200 needs and touches two words; a cache that is not there needs no flush. */
static int at_once(const struct fake_op *op)
{
	static const struct {
		const char *name;
		int words, buffers; /* which argument counts units of 16 bytes; how many addresses come before it */
		double bytes_per_ns;
	} stream[] = {{"ts_read", 1, 1, 4420}, {"ts_write", 1, 1, 4250}, {"ts_copy", 2, 2, 1950}};
	uint64_t blocks = (uint64_t)op->grid[0] * op->grid[1] * op->grid[2];
	const char *name = op->func->name;
	void **a = op->args;
	if (strncmp(name, "ts_scrub_", 9) == 0) { /* (seed, words, arrived), or (seed, arrived, sink) */
		**(uint64_t **)a[strcmp(name, "ts_scrub_shared") ? 1 : 2] += blocks;
		return 1;
	}
	for (size_t i = 0; i < sizeof stream / sizeof *stream; i++) {
		if (strcmp(stream[i].name, name))
			continue;
		uint64_t n = *(const uint64_t *)a[stream[i].words] * 2;
		for (int k = 0; n && k < stream[i].buffers; k++) {
			volatile uint64_t *p = *(volatile uint64_t **)a[k];
			(void)(p[0] ^ p[n - 1]);
		}
		fake_clock_add((uint64_t)((double)n * 8 / stream[i].bytes_per_ns));
		return 1;
	}
	return 0;
}

void fake_run_kernel(const struct fake_op *op)
{
	struct emu_launch l = {.shared_bytes = op->shared};
	uint64_t blocks = (uint64_t)op->grid[0] * op->grid[1] * op->grid[2];
	if (op->func->module->dead) {
		fake_say("kernel '%s': its module is unloaded", op->func->name);
		fake_fault(FAKE_INVALID_HANDLE);
	}
	if (at_once(op))
		return;
	memcpy(l.grid, op->grid, sizeof l.grid);
	memcpy(l.block, op->block, sizeof l.block);
	l.flags = op->cooperative ? EMU_LAUNCH_COOPERATIVE : 0;
	entry[0] = *op->func->host;
	emu_cur = &emu_main_fiber;
	order(op->block);
	running = op->func->module;
	globals(op->func->module, 1);
	/* one block after another; those of a cooperative launch may wait for each other */
	sched_run(&l, 0, op->args, op->cooperative ? (unsigned)blocks : 1, 0);
	globals(op->func->module, 0);
}
