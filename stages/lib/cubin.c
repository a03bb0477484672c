/*
 * cubin.c - see cubin.h: the reader.
 *
 * Offsets of ELF fields and the numbers of NVIDIA's records (.nv.info) are written out; what they mean
 * was checked against the driver (tests/gpu/truth).
 *
 * SPDX-License-Identifier: MIT
 */
#include "cubin_part.h"

#include "json.h"

#include <stdio.h>
#include <string.h>

enum { SECTIONS_MAX = 4096, SYMBOLS_MAX = 1 << 16, EM_CUDA = 190, RESERVED_SHARED = 1024 };
enum { SHT_SYMTAB_ = 2, SHT_NOBITS_ = 8, STT_OBJECT_ = 1, STT_FUNC_ = 2, STO_ENTRY = 0x10 };
enum { /* records of .nv.info: format 4, this code */
       INFO_MAX_THREADS = 0x05,
       INFO_REQ_THREADS = 0x10,
       INFO_FRAME = 0x11,
       INFO_PARAM = 0x17,
       INFO_REGS = 0x2f,
       INFO_CLUSTER = 0x3d,
};

struct elf {
	const uint8_t *data;
	size_t len;
	uint64_t sections_at;
	uint32_t sections, names; /* count; index of the section of names */
	struct err *e;
};

struct section {
	const char *name;
	uint32_t type, link;
	uint64_t at, size;
	const uint8_t *bytes; /* NULL: none in the file */
};

static uint64_t get(const uint8_t *p, int bytes)
{
	uint64_t v = 0;
	for (int i = bytes - 1; i >= 0; i--)
		v = v << 8 | p[i];
	return v;
}

static int bad(struct elf *x, const char *what)
{
	return err_set(x->e, EX_BADINPUT, "not a GPU module: %s", what);
}

static int raw_section(const struct elf *x, uint32_t i, struct section *s)
{
	const uint8_t *h = x->data + x->sections_at + (uint64_t)i * 64;
	s->type = (uint32_t)get(h + 4, 4);
	s->at = get(h + 24, 8);
	s->size = get(h + 32, 8);
	s->link = (uint32_t)get(h + 40, 4);
	int inside = s->at <= x->len && s->size <= x->len - s->at;
	s->bytes = s->type == SHT_NOBITS_ || !inside ? NULL : x->data + s->at;
	return s->type == SHT_NOBITS_ || inside ? 0 : -1;
}

/* A text in a section of texts, with its end inside; NULL when there is none. */
static const char *text_at(const struct section *s, uint64_t at)
{
	if (!s->bytes || at >= s->size || !memchr(s->bytes + at, 0, s->size - at))
		return NULL;
	return (const char *)s->bytes + at;
}

static int section(struct elf *x, uint32_t i, struct section *s)
{
	struct section names;
	if (i >= x->sections || raw_section(x, i, s) || raw_section(x, x->names, &names))
		return bad(x, "a section outside the file");
	s->name = text_at(&names, get(x->data + x->sections_at + (uint64_t)i * 64, 4));
	return s->name ? 0 : bad(x, "a section without a name");
}

static int header(struct elf *x, struct cubin *c)
{
	const uint8_t *h = x->data;
	if (x->len < 64 || memcmp(h, "\177ELF\2\1\1", 7) || get(h + 18, 2) != EM_CUDA)
		return bad(x, "no ELF of a GPU");
	uint64_t flags = get(h + 48, 4);
	c->sm = (int)(h[8] >= 8 ? flags >> 8 & 0xff : flags & 0xff); /* moved with ABI version 8 */
	x->sections_at = get(h + 40, 8);
	x->sections = (uint32_t)get(h + 60, 2);
	x->names = (uint32_t)get(h + 62, 2);
	if (get(h + 58, 2) != 64 || x->sections == 0 || x->sections > SECTIONS_MAX ||
	    x->names >= x->sections || x->sections_at > x->len ||
	    (uint64_t)x->sections * 64 > x->len - x->sections_at)
		return bad(x, "its section table");
	return 0;
}

/* ---- symbols ---- */

static int starts(const char *s, const char *with)
{
	return !strncmp(s, with, strlen(with));
}

struct symbol {
	const char *name;
	int type, bind, other;
	uint32_t section;
	uint64_t size;
};

struct symbols {
	struct section table, names;
	uint64_t n;
};

static int symbol(struct elf *x, const struct symbols *all, uint64_t i, struct symbol *s)
{
	if (i >= all->n)
		return bad(x, "a symbol that is not there");
	const uint8_t *p = all->table.bytes + i * 24;
	s->name = text_at(&all->names, get(p, 4));
	s->type = p[4] & 15;
	s->bind = p[4] >> 4;
	s->other = p[5];
	s->section = (uint32_t)get(p + 6, 2);
	s->size = get(p + 16, 8);
	return s->name ? 0 : bad(x, "a symbol without a name");
}

static int symbols_find(struct elf *x, struct symbols *all)
{
	struct section s;
	memset(all, 0, sizeof *all);
	for (uint32_t i = 1; i < x->sections; i++) {
		if (section(x, i, &s))
			return -1;
		if (s.type != SHT_SYMTAB_)
			continue;
		if (all->n)
			return bad(x, "two symbol tables");
		all->table = s;
		all->n = s.size / 24;
		if (!s.bytes || all->n == 0 || all->n > SYMBOLS_MAX || section(x, s.link, &all->names))
			return bad(x, "its symbol table");
	}
	return all->n ? 0 : bad(x, "no symbol table");
}

static int name_copy(struct elf *x, char out[CUBIN_NAME], const char *name)
{
	size_t n = strlen(name);
	if (n >= CUBIN_NAME)
		return bad(x, "a name is too long");
	memcpy(out, name, n + 1);
	return 0;
}

static int add_entry(struct elf *x, struct cubin *c, const struct symbol *s)
{
	if (c->nentries == CUBIN_ENTRIES)
		return bad(x, "too many kernels");
	for (int i = 0; i < c->nentries; i++)
		if (!strcmp(c->entry[i].name, s->name))
			return bad(x, "two kernels of one name");
	return name_copy(x, c->entry[c->nentries++].name, s->name);
}

static int add_global(struct elf *x, struct cubin *c, const struct symbol *s, int init)
{
	if (c->nglobals == CUBIN_GLOBALS || strlen(s->name) >= CUBIN_NAME) {
		c->hidden++;
		c->reload = 1;
		return 0;
	}
	struct cubin_global *g = &c->global[c->nglobals++];
	g->bytes = s->size;
	g->init = init;
	g->local = s->bind == 0;
	c->reload |= g->local;
	return name_copy(x, g->name, s->name);
}

/* The toolkit's own symbols for the shared memory it reserves are defined by nobody. */
static int system_symbol(const char *name)
{
	return !strncmp(name, ".nv.", 4) || !strncmp(name, "__nv_reserved", 13);
}

static int symbols_read(struct elf *x, const struct symbols *all, const struct cubin_note *note,
			struct cubin *c)
{
	for (uint64_t i = 1; i < all->n; i++) {
		struct symbol s;
		struct section in = {.name = ""};
		if (symbol(x, all, i, &s) ||
		    (s.section && s.section < x->sections && section(x, s.section, &in)))
			return -1;
		if (s.section == 0 && *s.name && !system_symbol(s.name) && !c->undefined++)
			snprintf(c->undefined_name, sizeof c->undefined_name, "%.*s", CUBIN_NAME - 1, s.name);
		if (s.type == STT_FUNC_ && s.section && s.other & STO_ENTRY && add_entry(x, c, &s))
			return -1;
		c->calls |= s.type == STT_FUNC_ && s.section && !(s.other & STO_ENTRY);
		/* a __constant__ has an address, and a kernel can write there */
		int fixed = starts(in.name, ".nv.constant3"), init = fixed || !strcmp(in.name, ".nv.global.init");
		if (s.type != STT_OBJECT_ || (!init && strcmp(in.name, ".nv.global")))
			continue;
		if ((!note || fixed || cubin_note_live(note, s.name)) && add_global(x, c, &s, init))
			return -1;
	}
	return 0;
}

/* ---- records ---- */

static struct cubin_entry *entry_named(struct cubin *c, const char *name)
{
	for (int i = 0; i < c->nentries; i++)
		if (!strcmp(c->entry[i].name, name))
			return &c->entry[i];
	return NULL;
}

/* Records about the whole module name a symbol first. */
static int module_record(struct elf *x, const struct symbols *all, struct cubin *c, int code,
			 const uint8_t *p, size_t n)
{
	struct symbol s;
	if ((code != INFO_REGS && code != INFO_FRAME) || n < 8)
		return 0;
	if (symbol(x, all, get(p, 4), &s))
		return -1;
	struct cubin_entry *k = entry_named(c, s.name);
	if (k && code == INFO_REGS)
		k->regs = (int64_t)get(p + 4, 4);
	if (k && code == INFO_FRAME)
		k->local = (int64_t)get(p + 4, 4);
	return 0;
}

static int param_record(struct elf *x, struct cubin_entry *k, const uint8_t *p)
{
	uint32_t ordinal = (uint32_t)get(p + 4, 2);
	if (ordinal >= CUBIN_PARAMS)
		return bad(x, "too many parameters");
	k->param[ordinal] = (struct cubin_param){(uint32_t)get(p + 6, 2), (uint32_t)get(p + 8, 4) >> 18};
	if (k->nparams <= (int)ordinal)
		k->nparams = (int)ordinal + 1;
	return 0;
}

static int entry_record(struct elf *x, struct cubin_entry *k, int code, const uint8_t *p, size_t n)
{
	if (n < 12)
		return 0;
	if (code == INFO_PARAM)
		return param_record(x, k, p);
	if (code == INFO_MAX_THREADS || code == INFO_REQ_THREADS) {
		uint64_t a = get(p, 4), b = get(p + 4, 4), d = get(p + 8, 4);
		k->max_threads = a > 1024 || b > 1024 || d > 1024 ? INT32_MAX : (int64_t)(a * b * d);
	}
	if (code == INFO_CLUSTER)
		for (int i = 0; i < 3; i++)
			k->cluster[i] = (int64_t)get(p + 4 * i, 4);
	return 0;
}

/* k NULL: of the module. Formats 1 to 3 have their value in two bytes, format 4 a length there. */
static int info(struct elf *x, const struct symbols *all, struct cubin *c, struct cubin_entry *k,
		const struct section *s)
{
	for (uint64_t at = 0; s->bytes && s->size - at >= 4;) {
		const uint8_t *p = s->bytes + at;
		size_t n = p[0] == 4 ? (size_t)get(p + 2, 2) : 0;
		at += 4;
		if (n > s->size - at || p[0] < 1 || p[0] > 4)
			return bad(x, "a broken record");
		if (p[0] == 4 &&
		    (k ? entry_record(x, k, p[1], p + 4, n) : module_record(x, all, c, p[1], p + 4, n)))
			return -1;
		at += n;
	}
	return 0;
}

static int one_section(struct elf *x, const struct symbols *all, struct cubin *c, const struct section *s)
{
	static const char INFO[] = ".nv.info.", SHARED[] = ".nv.shared.";
	struct cubin_entry *k;
	if (s->size > (uint64_t)1 << 40)
		return bad(x, "a section beyond all memory");
	if (!strcmp(s->name, ".nv.info"))
		return info(x, all, c, NULL, s);
	if (starts(s->name, INFO) && (k = entry_named(c, s->name + sizeof INFO - 1)))
		return info(x, all, c, k, s);
	if (starts(s->name, SHARED) && (k = entry_named(c, s->name + sizeof SHARED - 1))) {
		int64_t system = c->sm >= 90 ? RESERVED_SHARED : 0;
		k->shared = (int64_t)s->size > system ? (int64_t)s->size - system : 0;
	}
	if (!strcmp(s->name, ".nv.global") || !strcmp(s->name, ".nv.global.init"))
		c->global_bytes += s->size;
	if (starts(s->name, ".nv.constant3"))
		c->const_bytes += s->size;
	if (starts(s->name, ".init") || starts(s->name, ".fini") || starts(s->name, ".ctors") ||
	    starts(s->name, ".nv.init"))
		c->init_code = 1;
	return 0;
}

static int parse(struct elf *x, const struct cubin_note *note, struct cubin *c)
{
	struct symbols all;
	if (header(x, c) || symbols_find(x, &all) || symbols_read(x, &all, note, c))
		return -1;
	for (uint32_t i = 1; i < x->sections; i++) {
		struct section s;
		if (section(x, i, &s) || one_section(x, &all, c, &s))
			return -1;
	}
	/* a hole in the ordinals would be a parameter of no size */
	for (int i = 0; i < c->nentries; i++)
		for (int k = 0; k < c->entry[i].nparams; k++)
			if (c->entry[i].param[k].size == 0)
				return bad(x, "a parameter is not described");
	return 0;
}

int cubin_parse(const void *data, size_t len, struct cubin *out, struct err *e)
{
	struct cubin_note *note = NULL;
	size_t elf_len = len;
	memset(out, 0, sizeof *out);
	if (cubin_note_read(data, len, &elf_len, &note, e))
		return -1;
	struct elf x = {.data = data, .len = elf_len, .e = e};
	int rc = parse(&x, note, out);
	if (rc == 0 && note)
		cubin_note_apply(note, out);
	cubin_note_free(note);
	return rc;
}

const struct cubin_entry *cubin_find(const struct cubin *c, const char *entry)
{
	for (int i = 0; i < c->nentries; i++)
		if (!strcmp(c->entry[i].entry, entry))
			return &c->entry[i];
	for (int i = 0; i < c->nentries; i++)
		if (!c->entry[i].entry[0] && !strcmp(c->entry[i].name, entry))
			return &c->entry[i];
	return NULL;
}
