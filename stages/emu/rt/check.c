/* The sanitize build's memory check: every access of candidate code asks here first.
 *
 * SPDX-License-Identifier: MIT
 *
 * The compiler calls these for each load and store (-fsanitize=kernel-address, out of line).
 * An access is good when it lies within one buffer of the plan, within the launch's shared
 * memory, within the running thread's stack outside the red zones that the compiler put
 * around local arrays, or reads constant data. No gap between buffers needs poison: what is
 * not known to be good is wrong. Only the stacks have a shadow.
 */
#include "rt.h"
#include <string.h>
#include <sys/mman.h>

const char emu_build_name[] = "sanitize";

extern const char __executable_start[], _end[];

static EMU_STATE struct buffer last_buffer;

void hook_init(void)
{
	last_buffer = (struct buffer){0};
}

void hook_wipe(void)
{
	madvise((void *)((EMU_STACKS_BASE >> 3) + EMU_SHADOW_OFFSET), EMU_STACKS_BYTES >> 3,
		MADV_DONTNEED);
}

static signed char *shadow_of(uintptr_t a)
{
	return (signed char *)((a >> 3) + EMU_SHADOW_OFFSET);
}

void hook_fiber_stack(char *low, char *high)
{
	void *at = shadow_of((uintptr_t)low);
	void *got = mmap(at, (size_t)(high - low) >> 3, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
	if (got != at)
		report_fail(EMU_NOT_EMULABLE, 0, 0, NULL, "no address space for the stack shadow");
}

void hook_sync_op(void)
{
}

static int stack_good(uintptr_t a, size_t n)
{
	for (uintptr_t g = a >> 3; g <= (a + n - 1) >> 3; g++) {
		signed char s = *shadow_of(g << 3);
		if (!s)
			continue;
		uintptr_t end = a + n - (g << 3);
		if (s < 0 || (end < 8 ? end : 8) > (uintptr_t)s)
			return 0;
	}
	return 1;
}

static void bad_access(uintptr_t a, size_t n, int write, uintptr_t pc, const char *why)
{
	char where[160];
	emu_hot.busy = 1;
	report_fail(EMU_SANITIZER, pc, 0, NULL, "%s of %zu bytes at %s%s", write ? "write" : "read",
		    n, report_place(a, where, sizeof where), why);
}

static void check_slow(uintptr_t a, size_t n, int write, uintptr_t pc)
{
	struct fiber *f = emu_cur;
	if (a >= (uintptr_t)f->stack_low && a + n <= (uintptr_t)f->stack_high) {
		if (!stack_good(a, n)) {
			emu_hot.busy = 1;
			report_fail(EMU_SANITIZER, pc, 0, NULL,
				    "%s of %zu bytes outside a local variable",
				    write ? "write" : "read", n);
		}
		return;
	}
	uintptr_t shared = (uintptr_t)emu_tls_begin;
	if (a >= shared && a + n <= (uintptr_t)emu_dynamic_shared + emu_g.launch->shared_bytes)
		return;
	/* what the header's inline parts keep: the thread loop and the count of idle atomics */
	if (a >= (uintptr_t)&emu_hot && a + n <= (uintptr_t)(&emu_hot + 1))
		return;
	if (a >= (uintptr_t)&emu_thread && a + n <= (uintptr_t)(&emu_thread + 1))
		return;
	if (!write && a >= (uintptr_t)__executable_start && a + n <= (uintptr_t)_end)
		return;
	if (!write && a >= emu_arguments.base && a + n <= emu_arguments.base + emu_arguments.bytes)
		return;
	for (unsigned i = 0; i < emu_n_buffers; i++) {
		const struct buffer *b = &emu_buffers[i];
		if (a >= b->base && a + n <= b->base + b->bytes) {
			if (write && !b->writable)
				break;
			last_buffer = *b;
			return;
		}
	}
	bad_access(a, n, write, pc, "");
}

static inline __attribute__((always_inline)) void check(uintptr_t a, size_t n, int write,
							uintptr_t pc)
{
	if (emu_g.index == UINT32_MAX || !n)
		return;
	if (a >= last_buffer.base && a + n <= last_buffer.base + last_buffer.bytes &&
	    (!write || last_buffer.writable))
		return;
	check_slow(a, n, write, pc);
}

#define PC ((uintptr_t)__builtin_return_address(0) - 1)
#define ACCESS(n)                                                                                  \
	void __asan_load##n##_noabort(uintptr_t a);                                                \
	void __asan_store##n##_noabort(uintptr_t a);                                               \
	void __asan_load##n##_noabort(uintptr_t a)                                                 \
	{                                                                                          \
		check(a, n, 0, PC);                                                                \
	}                                                                                          \
	void __asan_store##n##_noabort(uintptr_t a)                                                \
	{                                                                                          \
		check(a, n, 1, PC);                                                                \
	}
ACCESS(1)
ACCESS(2)
ACCESS(4)
ACCESS(8)
ACCESS(16)
void __asan_loadN_noabort(uintptr_t a, size_t n);
void __asan_storeN_noabort(uintptr_t a, size_t n);
void __asan_handle_no_return(void);
void __asan_loadN_noabort(uintptr_t a, size_t n)
{
	check(a, n, 0, PC);
}
void __asan_storeN_noabort(uintptr_t a, size_t n)
{
	check(a, n, 1, PC);
}
/* some versions call the forms for memory in user space */
#define ALIAS(new, old) extern __typeof__(old) new __attribute__((alias(#old)))
ALIAS(__asan_load1, __asan_load1_noabort);
ALIAS(__asan_load2, __asan_load2_noabort);
ALIAS(__asan_load4, __asan_load4_noabort);
ALIAS(__asan_load8, __asan_load8_noabort);
ALIAS(__asan_load16, __asan_load16_noabort);
ALIAS(__asan_loadN, __asan_loadN_noabort);
ALIAS(__asan_store1, __asan_store1_noabort);
ALIAS(__asan_store2, __asan_store2_noabort);
ALIAS(__asan_store4, __asan_store4_noabort);
ALIAS(__asan_store8, __asan_store8_noabort);
ALIAS(__asan_store16, __asan_store16_noabort);
ALIAS(__asan_storeN, __asan_storeN_noabort);

/* the frames of the running thread are left for good */
void __asan_handle_no_return(void)
{
	struct fiber *f = emu_cur;
	if (!f->stack_low)
		return;
	uintptr_t low = (uintptr_t)__builtin_frame_address(0), high = (uintptr_t)f->stack_high;
	memset(shadow_of(low), 0, (high - low) >> 3);
}

void hook_copy(void *to, const void *from, size_t bytes, uintptr_t pc)
{
	check((uintptr_t)from, bytes, 0, pc);
	check((uintptr_t)to, bytes, 1, pc);
	memcpy(to, from, bytes);
}

/* what the candidate's memcpy, memmove and memset are in this build */
void *emu_memcpy(void *to, const void *from, size_t n);
void *emu_memmove(void *to, const void *from, size_t n);
void *emu_memset(void *to, int c, size_t n);
void *emu_memcpy(void *to, const void *from, size_t n)
{
	check((uintptr_t)from, n, 0, PC);
	check((uintptr_t)to, n, 1, PC);
	return memmove(to, from, n);
}
void *emu_memmove(void *to, const void *from, size_t n)
{
	return emu_memcpy(to, from, n);
}
void *emu_memset(void *to, int c, size_t n)
{
	check((uintptr_t)to, n, 1, PC);
	return memset(to, c, n);
}
