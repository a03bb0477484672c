/*
 * arm_script.c - launches in numbers -> the launch script of an emulated image. See arm_emu_part.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "arm_emu_part.h"
#include "defence.h"

#include <string.h>

/* What the image maps for buffer b. Under a fence or a sanitizer the payload alone, so that the
 * first byte past it is outside; else the whole segment, guards readable as on a GPU. */
static struct emu_buffer script_buffer(const struct emu *m, const struct mem_buf *b)
{
	struct emu_buffer o = {0};
	int bare = m->layout.fence || m->sanitize;

	o.fd = b->kind == MEM_INPUT ? EMU_FD_RO : EMU_FD_RW;
	o.offset = bare ? b->offset : b->seg_off;
	o.bytes = bare ? b->bytes : b->seg_len;
	o.base = bare ? b->addr : b->seg_addr;
	if (b->kind == MEM_INPUT && !DEFENCE("readonly.inputs"))
		o.flags = EMU_BUFFER_WRITABLE;
	return o;
}

static int buffer_index(const struct emu *m, enum mem_kind kind, int index)
{
	const struct mem_buf *b = mem_find(&m->layout, kind, index);

	return b && b->bytes ? (int)(b - m->layout.buf) : -1;
}

/* Script numbers of buffers: those of no bytes have none. */
static uint32_t script_number(const struct emu *m, int index)
{
	uint32_t n = 0;

	for (int i = 0; i < index; i++)
		n += m->layout.buf[i].bytes > 0;
	return n;
}

int script_arg(const struct emu *m, const struct launch_arg *a, struct emu_arg *o,
	       struct err *e)
{
	static const enum mem_kind KIND[] = {[ROLE_INPUT] = MEM_INPUT, [ROLE_OUTPUT] = MEM_OUTPUT,
					     [ROLE_WORKSPACE] = MEM_WORKSPACE};

	memset(o, 0, sizeof *o);
	if (a->kind == ARG_MAP)
		return err_set(e, EX_NOENV, "tensor maps cannot be emulated");
	if (a->kind != ARG_BUFFER) {
		o->kind = EMU_ARG_VALUE;
		o->bytes = (uint32_t)a->n;
		memcpy(o->value, a->data, (size_t)a->n);
		return 0;
	}
	int i = buffer_index(m, KIND[a->role], a->index);
	o->bytes = 8;
	if (i < 0) { /* an empty buffer: a null pointer */
		o->kind = EMU_ARG_VALUE;
		return 0;
	}
	const struct mem_buf *b = &m->layout.buf[i];
	struct emu_buffer sb = script_buffer(m, b);
	o->kind = EMU_ARG_POINTER;
	o->buffer = script_number(m, i);
	o->offset = b->addr - sb.base + (uint64_t)a->offset;
	return 0;
}

static uint32_t residency(const struct arm *a)
{
	int64_t least = EMU_MAX_RESIDENCY, coop = 1;

	for (int i = 0; i < a->l.n; i++) {
		const struct launch *l = &a->l.launch[i];
		int64_t blocks = 1;
		int64_t threads = (int64_t)l->block[0] * l->block[1] * l->block[2];
		if (facts_occupancy(&a->facts, l->entry, threads, l->shared, &blocks, NULL) < 0)
			blocks = 1;
		blocks *= a->facts.sm_count;
		least = blocks < least ? blocks : least;
		int64_t grid = (int64_t)l->grid[0] * l->grid[1] * l->grid[2];
		if (l->cooperative && grid > coop)
			coop = grid;
	}
	least = least < coop ? coop : least;
	return (uint32_t)(least < 1 ? 1 : least > EMU_MAX_RESIDENCY ? EMU_MAX_RESIDENCY : least);
}

static int entry_index(const struct plan *p, const char *entry)
{
	for (int i = 0; i < p->nentries; i++)
		if (!strcmp(p->entry[i], entry))
			return i;
	return -1;
}

static void script_launch(const struct launch *l, int entry, uint32_t first, struct emu_launch *o)
{
	memset(o, 0, sizeof *o);
	o->entry = (uint32_t)entry;
	memcpy(o->grid, l->grid, sizeof o->grid);
	memcpy(o->block, l->block, sizeof o->block);
	memcpy(o->cluster, l->cluster, sizeof o->cluster);
	o->shared_bytes = l->shared;
	o->flags = l->cooperative ? EMU_LAUNCH_COOPERATIVE : 0;
	o->first_arg = first;
	o->n_args = (uint32_t)l->nargs;
}

static void script_head(const struct arm *a, struct emu *m, struct emu_script *h)
{
	memset(h, 0, sizeof *h);
	h->magic = EMU_MAGIC;
	h->version = EMU_VERSION;
	h->sm_count = (uint32_t)a->facts.sm_count;
	h->residency = residency(a);
	h->max_shared = (uint32_t)(a->facts.max_shared < EMU_MAX_SHARED ? a->facts.max_shared
								      : EMU_MAX_SHARED);
	h->n_launches = (uint32_t)a->l.n;
	for (int i = 0; i < a->l.n; i++)
		h->n_args += (uint32_t)a->l.launch[i].nargs;
	for (uint32_t i = 0; i < m->layout.n; i++)
		h->n_buffers += m->layout.buf[i].bytes > 0;
	for (int i = 0; i < a->l.nworkspaces; i++)
		h->n_zeros += a->l.workspace[i].zero && a->l.workspace[i].bytes > 0;
}

static void script_zeros(const struct arm *a, struct emu *m)
{
	for (int i = 0; i < a->l.nworkspaces; i++) {
		int b = buffer_index(m, MEM_WORKSPACE, i);
		struct emu_zero z = {0};

		if (!a->l.workspace[i].zero || a->l.workspace[i].bytes <= 0 || b < 0)
			continue;
		z.buffer = script_number(m, b);
		z.offset = m->layout.buf[b].addr - script_buffer(m, &m->layout.buf[b]).base;
		z.bytes = (uint64_t)a->l.workspace[i].bytes;
		buf_add(&m->script, &z, sizeof z);
	}
}

int script_make(struct arm *a, struct emu *m, const struct plan *p, struct err *e)
{
	struct emu_script h;
	uint32_t first = 0;

	script_head(a, m, &h);
	buf_clear(&m->script);
	buf_add(&m->script, &h, sizeof h);
	for (uint32_t i = 0; i < m->layout.n; i++) {
		struct emu_buffer b = script_buffer(m, &m->layout.buf[i]);
		if (b.bytes && m->layout.buf[i].bytes)
			buf_add(&m->script, &b, sizeof b);
	}
	script_zeros(a, m);
	for (int i = 0; i < a->l.n; i++) {
		struct emu_launch o;
		int entry = entry_index(p, a->l.launch[i].entry);

		if (entry < 0)
			return err_set(e, EX_BADINPUT, "launch %d: entry '%s' is not declared", i,
				       a->l.launch[i].entry);
		script_launch(&a->l.launch[i], entry, first, &o);
		first += o.n_args;
		buf_add(&m->script, &o, sizeof o);
	}
	for (int i = 0; i < a->l.n; i++)
		for (int k = 0; k < a->l.launch[i].nargs; k++) {
			struct emu_arg o;
			if (script_arg(m, &a->l.launch[i].arg[k], &o, e) < 0)
				return -1;
			buf_add(&m->script, &o, sizeof o);
		}
	h.bytes = (uint32_t)m->script.len;
	memcpy(m->script.data, &h, sizeof h);
	if (m->script.len > EMU_MAX_SCRIPT)
		return err_set(e, EX_BADINPUT, "launch list too long for the emulation");
	return 0;
}
