/* Launch scripts: read, check strictly, map the buffers, run the launches.
 *
 * SPDX-License-Identifier: MIT
 */
#include "rt.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

enum { PAGE = 4096, ARG_SLOT = EMU_MAX_ARG_BYTES };

static struct emu_script *script;
static const struct emu_buffer *buffers;
static const struct emu_zero *zeros;
static const struct emu_launch *launches;
static const struct emu_arg *args;
static char *arg_bytes;
static void **arg_pointers;
static char wrong[256];

struct buffer emu_buffers[EMU_MAX_BUFFERS];
unsigned emu_n_buffers;
struct buffer emu_arguments;

#define WRONG(...) (snprintf(wrong, sizeof wrong, __VA_ARGS__), wrong)

static uint64_t page_down(uint64_t x)
{
	return x & ~(uint64_t)(PAGE - 1);
}

static uint64_t page_up(uint64_t x)
{
	return page_down(x + PAGE - 1);
}

const struct emu_script *script_get(void)
{
	return script;
}

static const char *script_read(void)
{
	struct emu_script head;
	if (pread(EMU_FD_SCRIPT, &head, sizeof head, 0) != (ssize_t)sizeof head)
		return "script: shorter than its header";
	if (head.magic != EMU_MAGIC || head.version != EMU_VERSION)
		return "script: wrong magic or version";
	if (head.n_buffers > EMU_MAX_BUFFERS || head.n_zeros > EMU_MAX_ZEROS ||
	    head.n_launches > EMU_MAX_LAUNCHES || head.n_args > EMU_MAX_ARGS)
		return "script: a count is above its limit";
	uint64_t need = sizeof head + head.n_buffers * sizeof *buffers +
			head.n_zeros * sizeof *zeros + head.n_launches * sizeof *launches +
			head.n_args * sizeof *args;
	if (need != head.bytes || need > EMU_MAX_SCRIPT)
		return "script: size does not match its counts";
	if (!head.residency || head.residency > EMU_MAX_RESIDENCY)
		return "script: residency out of range";
	if (head.stack_kib && (head.stack_kib < 16 || head.stack_kib > 4096 || head.stack_kib % 4))
		return "script: stack_kib out of range";
	if (head.max_shared > EMU_MAX_SHARED)
		return "script: max_shared out of range";
	char *at = malloc(need);
	if (!at)
		return "script: no memory";
	for (uint64_t have = 0; have < need;) {
		ssize_t n = pread(EMU_FD_SCRIPT, at + have, need - have, (off_t)have);
		if (n <= 0)
			return "script: cannot read it";
		have += (uint64_t)n;
	}
	script = (struct emu_script *)(void *)at;
	memcpy(script, &head, sizeof head); /* what was checked is what is used */
	buffers = (const void *)(at + sizeof head);
	zeros = (const void *)(buffers + head.n_buffers);
	launches = (const void *)(zeros + head.n_zeros);
	args = (const void *)(launches + head.n_launches);
	return NULL;
}

static const char *buffers_map(void)
{
	for (unsigned i = 0; i < script->n_buffers; i++) {
		const struct emu_buffer *b = &buffers[i];
		if (b->fd != EMU_FD_RO && b->fd != EMU_FD_RW)
			return WRONG("buffer %u: unknown fd %u", i, b->fd);
		if (!b->bytes || b->bytes > 1ull << 40 || b->offset > 1ull << 40)
			return WRONG("buffer %u: bad size or offset", i);
		if (b->base < PAGE || b->base > 1ull << 46 || (b->base ^ b->offset) & (PAGE - 1))
			return WRONG("buffer %u: base and offset differ within a page", i);
		uint64_t low = page_down(b->base), high = page_up(b->base + b->bytes);
		for (unsigned k = 0; k < i; k++)
			if (low < page_up(buffers[k].base + buffers[k].bytes) &&
			    page_down(buffers[k].base) < high)
				return WRONG("buffer %u: shares a page with buffer %u", i, k);
		int writable = b->fd == EMU_FD_RW || (b->flags & EMU_BUFFER_WRITABLE);
		void *at = mmap((void *)(uintptr_t)low, high - low,
				writable ? PROT_READ | PROT_WRITE : PROT_READ,
				MAP_SHARED | MAP_POPULATE | MAP_FIXED_NOREPLACE, (int)b->fd,
				(off_t)page_down(b->offset));
		if (at != (void *)(uintptr_t)low)
			return WRONG("buffer %u: cannot map it at 0x%llx", i,
				     (unsigned long long)b->base);
		emu_buffers[i] = (struct buffer){b->base, b->bytes, writable};
		emu_n_buffers = i + 1;
	}
	return NULL;
}

static const char *launch_check(const struct emu_launch *l, unsigned i)
{
	static const uint32_t grid_max[3] = {2147483647u, 65535, 65535};
	static const uint32_t block_max[3] = {1024, 1024, 64};
	if (l->entry >= emu_n_entries)
		return WRONG("launch %u: entry %u of %u", i, l->entry, emu_n_entries);
	const struct emu_entry *e = &emu_entries[l->entry];
	uint64_t threads = 1, blocks = 1;
	for (int d = 0; d < 3; d++) {
		threads *= l->block[d];
		blocks *= l->grid[d];
		if (!l->grid[d] || l->grid[d] > grid_max[d] || !l->block[d] ||
		    l->block[d] > block_max[d] || blocks > 1ull << 40)
			return WRONG("launch %u: grid or block out of range", i);
		if (l->cluster[d] == 0)
			return WRONG("launch %u: a cluster of no blocks", i);
	}
	if (threads > EMU_MAX_THREADS)
		return WRONG("launch %u: %llu threads in a block", i, (unsigned long long)threads);
	uint64_t shared = (uint64_t)(emu_dynamic_shared - emu_tls_begin) - 1024 + l->shared_bytes;
	if (l->shared_bytes > EMU_MAX_SHARED || shared > script->max_shared)
		return WRONG(
		    "launch %u: kernel '%s' needs %llu bytes of shared memory, the limit is %u", i,
		    e->name, (unsigned long long)shared, script->max_shared);
	if (l->first_arg > script->n_args || l->n_args > script->n_args - l->first_arg)
		return WRONG("launch %u: arguments out of range", i);
	if (l->n_args != e->n_params)
		return WRONG("launch %u: kernel '%s' has %u parameters, the plan gives %u", i,
			     e->name, e->n_params, l->n_args);
	for (unsigned a = 0; a < l->n_args; a++) {
		const struct emu_arg *g = &args[l->first_arg + a];
		if (g->bytes != e->param_bytes[a])
			return WRONG(
			    "launch %u: kernel '%s' parameter %u has %u bytes, the plan gives %u",
			    i, e->name, a, e->param_bytes[a], g->bytes);
	}
	return NULL;
}

static const char *args_fill(void)
{
	for (unsigned i = 0; i < script->n_args; i++) {
		const struct emu_arg *a = &args[i];
		char *slot = arg_bytes + (size_t)i * ARG_SLOT;
		arg_pointers[i] = slot;
		if (!a->bytes || a->bytes > EMU_MAX_ARG_BYTES)
			return WRONG("argument %u: bad size %u", i, a->bytes);
		if (a->kind == EMU_ARG_VALUE) {
			memcpy(slot, a->value, ARG_SLOT);
		} else if (a->kind == EMU_ARG_POINTER) {
			if (a->bytes != 8 || a->buffer >= script->n_buffers ||
			    a->offset > buffers[a->buffer].bytes)
				return WRONG("argument %u: bad pointer", i);
			uint64_t at = buffers[a->buffer].base + a->offset;
			memcpy(slot, &at, 8);
		} else {
			return WRONG("argument %u: unknown kind %u", i, a->kind);
		}
	}
	return NULL;
}

static const char *args_check(void)
{
	size_t n = script->n_args ? script->n_args : 1;
	size_t all = n * (ARG_SLOT + sizeof *arg_pointers);
	arg_bytes = aligned_alloc(ARG_SLOT, (all + ARG_SLOT - 1) / ARG_SLOT * ARG_SLOT);
	if (!arg_bytes)
		return "script: no memory for arguments";
	arg_pointers = (void **)(void *)(arg_bytes + n * ARG_SLOT);
	emu_arguments = (struct buffer){(uintptr_t)arg_bytes, all, 0};
	return args_fill();
}

const char *script_map(void)
{
	for (unsigned i = 0; i < emu_n_buffers; i++) {
		uint64_t low = page_down(emu_buffers[i].base);
		munmap((void *)(uintptr_t)low,
		       page_up(emu_buffers[i].base + emu_buffers[i].bytes) - low);
	}
	emu_n_buffers = 0;
	free(script);
	free(arg_bytes);
	script = NULL;
	arg_bytes = NULL;
	arg_pointers = NULL;
	const char *w = script_read();
	if (!w)
		w = args_check();
	for (unsigned i = 0; !w && i < script->n_launches; i++)
		w = launch_check(&launches[i], i);
	for (unsigned i = 0; !w && i < script->n_zeros; i++) {
		const struct emu_zero *z = &zeros[i];
		if (z->buffer >= script->n_buffers || buffers[z->buffer].fd != EMU_FD_RW ||
		    z->offset > buffers[z->buffer].bytes ||
		    z->bytes > buffers[z->buffer].bytes - z->offset)
			w = WRONG("zero fill %u: out of range", i);
	}
	if (!w)
		w = buffers_map();
	return w;
}

/* Values change from run to run (scalars of the problem), what is mapped does not. */
const char *script_args(void)
{
	size_t from = (size_t)((const char *)args - (const char *)script);
	size_t n = script->n_args * sizeof *args;
	const char *w = NULL;
	for (size_t have = 0; have < n;) {
		ssize_t k = pread(EMU_FD_SCRIPT, (char *)script + from + have, n - have,
				  (off_t)(from + have));
		if (k <= 0)
			return "script: cannot read it";
		have += (size_t)k;
	}
	w = args_fill();
	for (unsigned i = 0; !w && i < script->n_launches; i++)
		w = launch_check(&launches[i], i);
	return w;
}

static uint64_t next_random(uint64_t *state)
{
	uint64_t x = *state += 0x9e3779b97f4a7c15u;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

static void order_make(const struct emu_launch *l, const struct emu_command *c)
{
	struct emu_slot *o = emu_g.order;
	unsigned n = 0;
	for (unsigned z = 0; z < l->block[2]; z++)
		for (unsigned y = 0; y < l->block[1]; y++)
			for (unsigned x = 0; x < l->block[0]; x++, n++)
				o[n] = (struct emu_slot){x, y, z, n};
	if (c->order == EMU_ORDER_FORWARD)
		return;
	uint64_t seed = c->order_seed;
	for (unsigned i = n; i > 1; i--) {
		unsigned k =
		    c->order == EMU_ORDER_REVERSE ? n - i : (unsigned)(next_random(&seed) % i);
		if (c->order == EMU_ORDER_REVERSE && k >= i - 1)
			break;
		struct emu_slot t = o[i - 1];
		o[i - 1] = o[k];
		o[k] = t;
	}
}

/* Every 16 bits large in fp16, bf16, fp32, fp64 and as an integer, and different for each
 * seed, so that a result made from it shows. */
static uint64_t poison_pattern(uint64_t seed)
{
	uint64_t s = seed;
	return (next_random(&s) & 0x80ff80ff80ff80ffu) | 0x7a007a007a007a00u;
}

static void timer_set(long us)
{
	struct itimerval t = {{0, us}, {0, us}};
	setitimer(ITIMER_REAL, &t, NULL);
}

void script_run(const struct emu_command *c)
{
	emu_g.switches = emu_g.block_switches = 0;
	emu_g.order_mode = c->order;
	emu_g.order_seed = c->order_seed;
	emu_g.strict_barriers = !(script->flags & EMU_SCRIPT_MIXED_BARRIERS);
	emu_g.expired = 0;
	emu_g.shared_as_is = (c->flags & EMU_COMMAND_SHARED_AS_IS) != 0;
	emu_log_bytes = emu_log_dropped = 0;
	emu_notes = 0;
	tick_begin();
	timer_set(EMU_TICK_US);
	for (unsigned i = 0; i < script->n_zeros; i++)
		memset((void *)(uintptr_t)(buffers[zeros[i].buffer].base + zeros[i].offset), 0,
		       zeros[i].bytes);
	const struct emu_launch *before = NULL;
	for (unsigned i = 0; i < script->n_launches; i++) {
		const struct emu_launch *l = &launches[i];
		/* A plan for a GPU is right to have them; what it needs is a GPU. */
		if (l->cluster[0] * l->cluster[1] * l->cluster[2] != 1)
			report_fail(EMU_NOT_EMULABLE, 0, 0, NULL, "launch %u: clusters are not emulable", i);
		if (!before || memcmp(before->block, l->block, sizeof l->block))
			order_make(l, c);
		before = l;
		emu_g.shared_bytes = (size_t)(emu_dynamic_shared - emu_tls_begin) + l->shared_bytes;
		if (emu_g.shared_bytes == 1024)
			emu_g.shared_bytes = 0; /* only the marker */
		sched_run(l, i, arg_pointers + l->first_arg, script->residency,
			  poison_pattern(c->poison_seed));
	}
	emu_g.index = UINT32_MAX;
	timer_set(0);
}
