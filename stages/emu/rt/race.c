/* The race build: two threads touch one byte, one of them changes it, nothing orders them.
 *
 * SPDX-License-Identifier: MIT
 *
 * The compiler calls these hooks for each access (-fsanitize=thread, not linked with its
 * library). A report must be true, so whatever might order two accesses is taken to do so:
 * any atomic, fence, volatile access or sleep of anybody between them; a barrier of the block
 * for threads of one block; a warp operation for lanes of one warp; a launch or grid.sync()
 * for all. A store that does not change the byte is no write: threads may all set one flag.
 * What a store did is seen at the next hook, before anybody else can have touched it.
 */
#include "rt.h"
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

const char emu_build_name[] = "race";

struct mark {
	unsigned who;	/* block serial * 1024 + thread + 1; 0: nobody */
	unsigned epoch; /* of the block's barriers, never the same in two blocks */
	unsigned warp;	/* collectives of its warp so far */
	unsigned order; /* `orders` then */
	unsigned pc;
};
struct cell {
	struct mark write, read, other_read;
};
struct area {
	uintptr_t base, bytes;
	struct cell *cells;
	int shared;
};

static struct area areas[EMU_MAX_BUFFERS + 1];
static unsigned n_areas;
static EMU_STATE unsigned orders; /* events so far that may order anything */

static EMU_STATE struct {
	uintptr_t at;
	unsigned bytes;
	unsigned char old[64];
	struct mark mark;
	struct emu_slot thread;
	struct emu_u3 block;
} pending;

#define PC ((unsigned)((uintptr_t)__builtin_return_address(0) - 1))

static void area_add(uintptr_t base, uintptr_t bytes, int shared)
{
	struct area *a = &areas[n_areas++];
	a->base = base;
	a->bytes = bytes;
	a->shared = shared;
	a->cells = mmap(NULL, bytes * sizeof *a->cells, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (a->cells == MAP_FAILED)
		report_fail(EMU_NOT_EMULABLE, 0, 0, NULL, "no address space for the race check");
}

void hook_init(void)
{
	for (unsigned i = 0; i < n_areas; i++)
		munmap(areas[i].cells, areas[i].bytes * sizeof *areas[i].cells);
	n_areas = 0;
	pending.bytes = 0;
	area_add((uintptr_t)emu_tls_begin,
		 (uintptr_t)(emu_dynamic_shared - emu_tls_begin) + EMU_MAX_SHARED, 1);
	for (unsigned i = 0; i < emu_n_buffers; i++)
		area_add(emu_buffers[i].base, emu_buffers[i].bytes, 0);
}

/* the counters have gone back too */
void hook_wipe(void)
{
	for (unsigned i = 0; i < n_areas; i++)
		madvise(areas[i].cells, areas[i].bytes * sizeof *areas[i].cells, MADV_DONTNEED);
}

void hook_fiber_stack(char *low, char *high)
{
	(void)low;
	(void)high;
}

static struct area *area_of(uintptr_t at, unsigned n)
{
	static EMU_STATE struct area *last = areas;
	if (last < areas + n_areas && at >= last->base && at + n <= last->base + last->bytes)
		return last;
	for (unsigned i = 0; i < n_areas; i++)
		if (at >= areas[i].base && at + n <= areas[i].base + areas[i].bytes)
			return last = &areas[i];
	return NULL;
}

static struct mark mark_now(unsigned pc)
{
	const struct block *b = emu_g.current;
	unsigned lin = emu_thread.lin;
	return (struct mark){(unsigned)b->serial * EMU_MAX_THREADS + lin + 1, b->bar_epoch,
			     b->warps[lin / EMU_WARP].collectives, orders, pc};
}

static int conflict(const struct mark *old, const struct mark *now, int shared)
{
	if (!old->who || old->who == now->who || old->order != now->order)
		return 0;
	if ((old->who - 1) / EMU_MAX_THREADS != (now->who - 1) / EMU_MAX_THREADS)
		return !shared;
	if (old->epoch != now->epoch)
		return 0;
	return (old->who - 1) / EMU_WARP != (now->who - 1) / EMU_WARP || old->warp == now->warp;
}

static void race_report(uintptr_t at, const struct mark *old, const char *did,
			const struct mark *now, const char *does)
{
	char where[160];
	const char *file;
	unsigned lin = (old->who - 1) % EMU_MAX_THREADS, x = lin % emu_blockDim.x,
		 y = lin / emu_blockDim.x % emu_blockDim.y,
		 z = lin / emu_blockDim.x / emu_blockDim.y;
	int line = lines_find(old->pc, &file);
	int same = (old->who - 1) / EMU_MAX_THREADS == (now->who - 1) / EMU_MAX_THREADS;
	emu_hot.busy = 1;
	report_fail(EMU_RACE, now->pc, 0, NULL,
		    "race: %s %s, %s by thread (%u,%u,%u) of %s at %s:%d", does,
		    report_place(at, where, sizeof where), did, x, y, z,
		    same ? "the same block" : "another block", file ? file : "?", line);
}

/* The last store has happened: look at what it changed. */
static void settle(void)
{
	unsigned n = pending.bytes;
	if (!n)
		return;
	pending.bytes = 0;
	if (!memcmp((const void *)pending.at, pending.old, n))
		return;
	struct area *a = area_of(pending.at, n);
	for (unsigned i = 0; i < n; i++) {
		if (((const unsigned char *)pending.at)[i] == pending.old[i])
			continue;
		struct cell *c = &a->cells[pending.at + i - a->base];
		const struct mark *hit = NULL;
		const char *did = "written";
		if (conflict(&c->write, &pending.mark, a->shared))
			hit = &c->write;
		else if (conflict(&c->read, &pending.mark, a->shared))
			hit = &c->read, did = "read";
		else if (conflict(&c->other_read, &pending.mark, a->shared))
			hit = &c->other_read, did = "read";
		if (hit) {
			emu_thread = pending.thread;
			emu_blockIdx = pending.block;
			race_report(pending.at + i, hit, did, &pending.mark, "a write to");
		}
		c->write = pending.mark;
	}
}

void hook_sync_op(void)
{
	settle();
	orders++;
}

static void hook_access(uintptr_t at, size_t size, int write, unsigned pc)
{
	if (emu_g.index == UINT32_MAX || !emu_g.current)
		return;
	int was = emu_hot.busy;
	emu_hot.busy = 1;
	settle();
	while (size) {
		unsigned n =
		    size > sizeof pending.old ? (unsigned)sizeof pending.old : (unsigned)size;
		struct area *a = area_of(at, n);
		if (!a)
			break;
		struct mark m = mark_now(pc);
		if (write && size <= sizeof pending.old) {
			memcpy(pending.old, (const void *)at, n);
			pending.at = at;
			pending.bytes = n;
			pending.mark = m;
			pending.thread = emu_thread;
			pending.block = emu_blockIdx;
		}
		for (unsigned i = 0; i < n && !write; i++) {
			struct cell *c = &a->cells[at + i - a->base];
			if (conflict(&c->write, &m, a->shared))
				race_report(at + i, &c->write, "written", &m, "a read of");
			if (c->read.who != m.who)
				c->other_read = c->read;
			c->read = m;
		}
		at += n;
		size -= n;
	}
	emu_hot.busy = was;
}

void hook_copy(void *to, const void *from, size_t bytes, uintptr_t pc)
{
	hook_access((uintptr_t)from, bytes, 0, (unsigned)pc);
	hook_access((uintptr_t)to, bytes, 1, (unsigned)pc);
	memcpy(to, from, bytes);
}

static void ordered(void)
{
	int was = emu_hot.busy;
	emu_hot.busy = 1;
	hook_sync_op();
	emu_hot.busy = was;
}

/* a flag access, unless it is the thread loop's own */
static void flag(uintptr_t a, unsigned n)
{
	if (area_of(a, n))
		ordered();
}

#define ACCESS(n)                                                                                  \
	void __tsan_read##n(uintptr_t a);                                                          \
	void __tsan_write##n(uintptr_t a);                                                         \
	void __tsan_unaligned_read##n(uintptr_t a);                                                \
	void __tsan_unaligned_write##n(uintptr_t a);                                               \
	void __tsan_volatile_read##n(uintptr_t a);                                                 \
	void __tsan_volatile_write##n(uintptr_t a);                                                \
	void __tsan_unaligned_volatile_read##n(uintptr_t a);                                       \
	void __tsan_unaligned_volatile_write##n(uintptr_t a);                                      \
	void __tsan_read##n(uintptr_t a)                                                           \
	{                                                                                          \
		hook_access(a, n, 0, PC);                                                          \
	}                                                                                          \
	void __tsan_write##n(uintptr_t a)                                                          \
	{                                                                                          \
		hook_access(a, n, 1, PC);                                                          \
	}                                                                                          \
	void __tsan_unaligned_read##n(uintptr_t a)                                                 \
	{                                                                                          \
		hook_access(a, n, 0, PC);                                                          \
	}                                                                                          \
	void __tsan_unaligned_write##n(uintptr_t a)                                                \
	{                                                                                          \
		hook_access(a, n, 1, PC);                                                          \
	}                                                                                          \
	void __tsan_volatile_read##n(uintptr_t a)                                                  \
	{                                                                                          \
		flag(a, n);                                                                        \
	}                                                                                          \
	void __tsan_volatile_write##n(uintptr_t a)                                                 \
	{                                                                                          \
		flag(a, n);                                                                        \
	}                                                                                          \
	void __tsan_unaligned_volatile_read##n(uintptr_t a)                                        \
	{                                                                                          \
		flag(a, n);                                                                        \
	}                                                                                          \
	void __tsan_unaligned_volatile_write##n(uintptr_t a)                                       \
	{                                                                                          \
		flag(a, n);                                                                        \
	}
ACCESS(1)
ACCESS(2)
ACCESS(4)
ACCESS(8)
ACCESS(16)

void __tsan_read_range(uintptr_t a, size_t n);
void __tsan_write_range(uintptr_t a, size_t n);
void __tsan_init(void);
void __tsan_func_entry(void *pc);
void __tsan_func_exit(void);
void __tsan_vptr_update(void **p, void *v);
void __tsan_vptr_read(void **p);
void __tsan_read_range(uintptr_t a, size_t n)
{
	hook_access(a, n, 0, PC);
}
void __tsan_write_range(uintptr_t a, size_t n)
{
	hook_access(a, n, 1, PC);
}
void __tsan_init(void)
{
}
void __tsan_func_entry(void *pc)
{
	(void)pc;
}
void __tsan_func_exit(void)
{
}
void __tsan_vptr_update(void **p, void *v)
{
	(void)p, (void)v;
}
void __tsan_vptr_read(void **p)
{
	(void)p;
}

/* what the candidate's memcpy, memmove and memset are in this build */
void *emu_memcpy(void *to, const void *from, size_t n);
void *emu_memmove(void *to, const void *from, size_t n);
void *emu_memset(void *to, int c, size_t n);
void *emu_memcpy(void *to, const void *from, size_t n)
{
	hook_access((uintptr_t)from, n, 0, PC);
	hook_access((uintptr_t)to, n, 1, PC);
	return memmove(to, from, n);
}
void *emu_memmove(void *to, const void *from, size_t n)
{
	return emu_memcpy(to, from, n);
}
void *emu_memset(void *to, int c, size_t n)
{
	hook_access((uintptr_t)to, n, 1, PC);
	return memset(to, c, n);
}

/* Atomics: they order, and they do what they are asked. */
#define RMW(bits, T, name, builtin)                                                                \
	T __tsan_atomic##bits##_##name(volatile T *p, T v, int order);                             \
	T __tsan_atomic##bits##_##name(volatile T *p, T v, int order)                              \
	{                                                                                          \
		(void)order;                                                                       \
		ordered();                                                                         \
		return builtin(p, v, __ATOMIC_SEQ_CST);                                            \
	}
#define ATOMIC(bits, T)                                                                            \
	RMW(bits, T, exchange, __atomic_exchange_n)                                                \
	RMW(bits, T, fetch_add, __atomic_fetch_add)                                                \
	RMW(bits, T, fetch_sub, __atomic_fetch_sub)                                                \
	RMW(bits, T, fetch_and, __atomic_fetch_and)                                                \
	RMW(bits, T, fetch_or, __atomic_fetch_or)                                                  \
	RMW(bits, T, fetch_xor, __atomic_fetch_xor)                                                \
	RMW(bits, T, fetch_nand, __atomic_fetch_nand)                                              \
	T __tsan_atomic##bits##_load(const volatile T *p, int order);                              \
	void __tsan_atomic##bits##_store(volatile T *p, T v, int order);                           \
	T __tsan_atomic##bits##_compare_exchange_val(volatile T *p, T e, T v, int order,           \
						     int fail);                                    \
	int __tsan_atomic##bits##_compare_exchange_strong(volatile T *p, T *e, T v, int order,     \
							  int fail);                               \
	int __tsan_atomic##bits##_compare_exchange_weak(volatile T *p, T *e, T v, int order,       \
							int fail);                                 \
	T __tsan_atomic##bits##_load(const volatile T *p, int order)                               \
	{                                                                                          \
		(void)order;                                                                       \
		ordered();                                                                         \
		return __atomic_load_n(p, __ATOMIC_SEQ_CST);                                       \
	}                                                                                          \
	void __tsan_atomic##bits##_store(volatile T *p, T v, int order)                            \
	{                                                                                          \
		(void)order;                                                                       \
		ordered();                                                                         \
		__atomic_store_n(p, v, __ATOMIC_SEQ_CST);                                          \
	}                                                                                          \
	T __tsan_atomic##bits##_compare_exchange_val(volatile T *p, T e, T v, int order, int fail) \
	{                                                                                          \
		(void)order, (void)fail;                                                           \
		ordered();                                                                         \
		__atomic_compare_exchange_n(p, &e, v, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);      \
		return e;                                                                          \
	}                                                                                          \
	int __tsan_atomic##bits##_compare_exchange_strong(volatile T *p, T *e, T v, int order,     \
							  int fail)                                \
	{                                                                                          \
		(void)order, (void)fail;                                                           \
		ordered();                                                                         \
		return __atomic_compare_exchange_n(p, e, v, 0, __ATOMIC_SEQ_CST,                   \
						   __ATOMIC_SEQ_CST);                              \
	}                                                                                          \
	int __tsan_atomic##bits##_compare_exchange_weak(volatile T *p, T *e, T v, int order,       \
							int fail)                                  \
	{                                                                                          \
		return __tsan_atomic##bits##_compare_exchange_strong(p, e, v, order, fail);        \
	}
ATOMIC(8, uint8_t)
ATOMIC(16, uint16_t)
ATOMIC(32, uint32_t)
ATOMIC(64, uint64_t)

void __tsan_atomic_thread_fence(int order);
void __tsan_atomic_signal_fence(int order);
void __tsan_atomic_thread_fence(int order)
{
	(void)order;
	ordered();
}
void __tsan_atomic_signal_fence(int order)
{
	(void)order;
}
