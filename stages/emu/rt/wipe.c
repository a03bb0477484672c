/* WIPE: the process as it was after MAP, so that no rep finds what an earlier one left.
 *
 * SPDX-License-Identifier: MIT
 *
 * A checkpoint. MAP ends in wipe_seal(): from a stack of its own it copies every writable byte of
 * the process (data and bss of the image, heap with the thread-local block, main stack) to memory
 * that is read-only from then on. WIPE ends in wipe_back(): the copies go back, what grew since is
 * cleared or given back, and the main stack goes on where wipe_seal() was called. Fibers, block
 * records and saved shared memory are kept, for they are dear to map, but emptied and listed anew.
 * Nothing that a kernel can write is used to find what must be cleared.
 */
#include "rt.h"
#include <elf.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <asm/prctl.h>
#endif

enum { PAGE = 4096, STACK_BYTES = 65536, SPANS = 3 };

struct span {
	char *low, *high;
	char *copy;
};

struct sealed {
	struct wipe_pools pools; /* first: what wipe_pools() shows */
	int sealed;
	struct span span[SPANS]; /* image, heap, main stack */
	void *main_sp;
	char *copies;
	size_t copies_bytes;
};

#define SEALED ((struct sealed *)EMU_SEALED_BASE)
#define OWN_STACK ((char *)EMU_SEALED_BASE + PAGE)

extern const char __ehdr_start[], _end[];
extern const char __start_emu_state[], __stop_emu_state[];

static uintptr_t down(uintptr_t a)
{
	return a & ~(uintptr_t)(PAGE - 1);
}

static uintptr_t up(uintptr_t a)
{
	return down(a + PAGE - 1);
}

const struct wipe_pools *wipe_pools(void)
{
	return &SEALED->pools;
}

static void protect(void *at, size_t n, int how)
{
	if (mprotect(at, n, how))
		report_fail(EMU_NOT_EMULABLE, 0, 0, NULL, "cannot protect the checkpoint");
}

void wipe_pools_set(unsigned fibers, unsigned blocks)
{
	protect(SEALED, PAGE, PROT_READ | PROT_WRITE);
	SEALED->pools.fibers = fibers;
	SEALED->pools.blocks = blocks;
	protect(SEALED, PAGE, PROT_READ);
}

/* Once, before anything else. */
void wipe_init(void)
{
	_Static_assert(sizeof(struct sealed) <= PAGE, "the checkpoint's head is one page");
	void *at = mmap((void *)EMU_SEALED_BASE, PAGE + STACK_BYTES, PROT_NONE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (at != (void *)EMU_SEALED_BASE)
		report_fail(EMU_NOT_EMULABLE, 0, 0, NULL, "no address space for the checkpoint");
	protect(SEALED, PAGE, PROT_READ);
}

static int is_mapped(uintptr_t page)
{
	return madvise((void *)page, PAGE, MADV_NORMAL) == 0;
}

/* What may be written of the image: its last segment without what is read-only after start. */
static void find_image(struct span *s)
{
	const Elf64_Ehdr *h = (const void *)__ehdr_start;
	const Elf64_Phdr *p = (const void *)(__ehdr_start + h->e_phoff);
	uintptr_t low = 0, high = 0, relro = 0;
	for (unsigned i = 0; i < h->e_phnum; i++) {
		if (p[i].p_type == PT_LOAD && p[i].p_flags & PF_W) {
			low = p[i].p_vaddr;
			high = p[i].p_vaddr + p[i].p_memsz;
		} else if (p[i].p_type == PT_GNU_RELRO) {
			relro = p[i].p_vaddr + p[i].p_memsz;
		}
	}
	s->low = (char *)down(relro > low ? relro : low);
	s->high = (char *)up(high);
}

static void find_heap(struct span *s)
{
	uintptr_t at = down((uintptr_t)emu_tls_begin), floor = up((uintptr_t)_end);
	while (at > floor && is_mapped(at - PAGE))
		at -= PAGE;
	s->low = (char *)at;
	s->high = (char *)up((uintptr_t)syscall(SYS_brk, 0));
}

static void find_stack(struct span *s)
{
	const char *top = (const char *)getauxval(AT_EXECFN); /* the last thing on it */
	uintptr_t at = down((uintptr_t)top);
	while (is_mapped(at - PAGE))
		at -= PAGE;
	s->low = (char *)at;
	s->high = (char *)up((uintptr_t)top + strlen(top) + 1 + sizeof(void *));
}

/* No instruction of plain C reads these, so nobody may have left something in them. */
static void clear_registers(void)
{
#if defined(__x86_64__)
	unsigned modes = 0x1f80;
	__asm__ volatile("fninit\n	ldmxcsr %0\n"
			 "	pxor %%xmm0,%%xmm0\n	pxor %%xmm1,%%xmm1\n	pxor %%xmm2,%%xmm2\n"
			 "	pxor %%xmm3,%%xmm3\n	pxor %%xmm4,%%xmm4\n	pxor %%xmm5,%%xmm5\n"
			 "	pxor %%xmm6,%%xmm6\n	pxor %%xmm7,%%xmm7\n	pxor %%xmm8,%%xmm8\n"
			 "	pxor %%xmm9,%%xmm9\n	pxor %%xmm10,%%xmm10\n	pxor %%xmm11,%%xmm11\n"
			 "	pxor %%xmm12,%%xmm12\n	pxor %%xmm13,%%xmm13\n"
			 "	pxor %%xmm14,%%xmm14\n	pxor %%xmm15,%%xmm15\n"
			 :
			 : "m"(modes)
			 : "memory", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7",
			   "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
	syscall(SYS_arch_prctl, ARCH_SET_GS, 0);
#elif defined(__aarch64__)
	__asm__ volatile("msr fpcr, xzr\n	msr fpsr, xzr" : : : "memory");
#endif
}

/* Runs on the checkpoint's own stack: copies everything, goes back. */
static void seal_main(void)
{
	struct sealed *s = SEALED;
	char *to = s->copies;
	for (int i = 0; i < SPANS; i++) {
		s->span[i].copy = to;
		memcpy(to, s->span[i].low, (size_t)(s->span[i].high - s->span[i].low));
		to += s->span[i].high - s->span[i].low;
	}
	s->sealed = 1;
	protect(s->copies, s->copies_bytes, PROT_READ);
	protect(s, PAGE, PROT_READ);
	void *here;
	emu_switch(&here, s->main_sp);
}

static void stack_done(void)
{
	protect(OWN_STACK, STACK_BYTES, PROT_NONE);
}

/* Returns after MAP, and again after each WIPE. */
void wipe_seal(unsigned stack_bytes)
{
	struct sealed *s = SEALED;
	size_t n = 0;
	protect(s, PAGE + STACK_BYTES, PROT_READ | PROT_WRITE);
	if (s->copies)
		munmap(s->copies, s->copies_bytes);
	if (!s->pools.fibers) /* settled with the first one */
		s->pools.stack_bytes = stack_bytes;
	find_image(&s->span[0]);
	find_heap(&s->span[1]);
	find_stack(&s->span[2]);
	for (int i = 0; i < SPANS; i++)
		n += (size_t)(s->span[i].high - s->span[i].low);
	s->copies = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	s->copies_bytes = n;
	if (s->copies == MAP_FAILED)
		report_fail(EMU_NOT_EMULABLE, 0, 0, NULL, "no memory for the checkpoint");
	emu_switch(&s->main_sp, emu_stack_prepare(OWN_STACK + STACK_BYTES, seal_main));
	stack_done();
}

/* What no launch changes: the data of libc and of the image outside the runtime's own state. */
static const char *changed(const struct span *s)
{
	const char *low = __start_emu_state, *high = __stop_emu_state;
	for (const char *p = s->low; p < s->high; p += PAGE) {
		const char *was = s->copy + (p - s->low);
		if (!memcmp(p, was, PAGE))
			continue;
		for (int i = 0; i < PAGE; i++)
			if (p[i] != was[i] && (p + i < low || p + i >= high))
				return p + i;
	}
	return NULL;
}

static void put_back(const struct span *s)
{
	for (char *p = s->low; p < s->high; p += PAGE)
		if (memcmp(p, s->copy + (p - s->low), PAGE))
			memcpy(p, s->copy + (p - s->low), PAGE);
}

/* A page that nobody wrote is read only: it stays the system's zero page. One that is given back
 * would have to be mapped again by the next run, on the clock. */
void wipe_clear(char *low, char *high, int keep)
{
	if (!keep) {
		madvise(low, (size_t)(high - low), MADV_DONTNEED);
		return;
	}
	for (char *p = low; p < high; p += PAGE) {
		uint64_t first;
		memcpy(&first, p, sizeof first);
		if (first || memcmp(p, p + sizeof first, PAGE - sizeof first))
			memset(p, 0, PAGE);
	}
}

static void back_main(void)
{
	struct sealed *s = SEALED;
	const char *bad = emu_log_bytes ? NULL : changed(&s->span[0]);
	if (bad)
		report_fail(EMU_BAD_STATE, 0, 0, NULL,
			    "the kernel wrote outside its memory: %s",
			    bad >= _end ? "behind the program's data" : "into the program's data");
	/* first what grew, then what was there */
	uintptr_t low = (uintptr_t)s->span[2].low;
	while (is_mapped(low - PAGE))
		low -= PAGE;
	if (low < (uintptr_t)s->span[2].low)
		madvise((void *)low, (uintptr_t)s->span[2].low - low, MADV_DONTNEED);
	if (up((uintptr_t)syscall(SYS_brk, 0)) != (uintptr_t)s->span[1].high)
		syscall(SYS_brk, s->span[1].high);
	for (int i = 0; i < SPANS; i++)
		put_back(&s->span[i]);
	stack_wipe();
	block_wipe();
	madvise((void *)EMU_COPIES_BASE, EMU_COPIES_BYTES, MADV_DONTNEED);
	hook_wipe();
	clear_registers();
	void *here;
	emu_switch(&here, s->main_sp);
}

/* Does not return: the caller goes on behind wipe_seal(). */
void wipe_back(void)
{
	void *here;
	if (!SEALED->sealed)
		report_fail(EMU_BAD_SCRIPT, 0, 0, NULL, "WIPE before MAP");
	protect(OWN_STACK, STACK_BYTES, PROT_READ | PROT_WRITE);
	emu_switch(&here, emu_stack_prepare(OWN_STACK + STACK_BYTES, back_main));
	__builtin_unreachable();
}
