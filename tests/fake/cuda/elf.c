/*
 * elf.c - what a cubin contains, as far as the fake driver has to know it.
 *
 * Its own reader on purpose: stages/lib/cubin.c is under test. The bytes come from NVRTC or a test.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fake.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

enum { MACHINE_CUDA = 190, ENTRY_FLAG = 0x10, RESERVED_SHARED = 1024 };
/* Records of .nv.info: format 4, attribute, 16-bit size, payload. */
enum { INFO_MAX_THREADS = 0x05, INFO_FRAME = 0x11, INFO_PARAM = 0x17, INFO_REGS = 0x2f, INFO_CLUSTER = 0x3d };

struct elf {
	const uint8_t *data;
	size_t len;
	const Elf64_Shdr *sec;
	unsigned nsec;
	const char *names;
	size_t names_len;
	const Elf64_Sym *sym;
	size_t nsym;
	const char *strings;
	size_t strings_len;
};

static const void *part(const struct elf *x, uint64_t at, uint64_t n)
{
	return at > x->len || n > x->len - at ? NULL : x->data + at;
}

static const char *name_in(const char *table, size_t len, uint64_t at)
{
	return at < len && memchr(table + at, 0, len - at) ? table + at : "";
}

static const char *sec_name(const struct elf *x, unsigned i)
{
	return name_in(x->names, x->names_len, x->sec[i].sh_name);
}

static const Elf64_Shdr *sec_find(const struct elf *x, const char *prefix, const char *rest)
{
	char name[2 * FAKE_NAME];
	snprintf(name, sizeof name, "%s%s", prefix, rest);
	for (unsigned i = 0; i < x->nsec; i++)
		if (strcmp(sec_name(x, i), name) == 0)
			return &x->sec[i];
	return NULL;
}

static int open_elf(struct elf *x)
{
	const Elf64_Ehdr *h = part(x, 0, sizeof *h);
	if (!h || memcmp(h->e_ident, ELFMAG, SELFMAG) || h->e_ident[EI_CLASS] != ELFCLASS64 ||
	    h->e_machine != MACHINE_CUDA || h->e_shentsize != sizeof(Elf64_Shdr) || h->e_shoff % 8)
		return FAKE_INVALID_IMAGE;
	/* the architecture is in the lowest byte, or in the second since CUDA 13 */
	if ((h->e_flags & 0xff) != 90 && (h->e_flags >> 8 & 0xff) != 90)
		return FAKE_NO_BINARY;
	x->nsec = h->e_shnum;
	x->sec = part(x, h->e_shoff, (uint64_t)x->nsec * sizeof(Elf64_Shdr));
	if (!x->sec || h->e_shstrndx >= x->nsec)
		return FAKE_INVALID_IMAGE;
	for (unsigned i = 0; i < x->nsec; i++)
		if (x->sec[i].sh_type != SHT_NOBITS && !part(x, x->sec[i].sh_offset, x->sec[i].sh_size))
			return FAKE_INVALID_IMAGE;
	x->names = part(x, x->sec[h->e_shstrndx].sh_offset, x->sec[h->e_shstrndx].sh_size);
	x->names_len = x->sec[h->e_shstrndx].sh_size;
	const Elf64_Shdr *s = sec_find(x, ".symtab", "");
	if (!s || s->sh_link >= x->nsec || s->sh_offset % 8)
		return FAKE_INVALID_IMAGE;
	x->sym = part(x, s->sh_offset, s->sh_size);
	x->nsym = s->sh_size / sizeof(Elf64_Sym);
	x->strings = part(x, x->sec[s->sh_link].sh_offset, x->sec[s->sh_link].sh_size);
	x->strings_len = x->sec[s->sh_link].sh_size;
	return 0;
}

static struct CUfunc_st *func_find(struct CUmod_st *m, const char *name)
{
	for (int i = 0; i < m->nfuncs; i++)
		if (strcmp(m->func[i].name, name) == 0)
			return &m->func[i];
	return NULL;
}

static void info_one(struct CUfunc_st *f, unsigned attribute, const uint32_t *w, unsigned words)
{
	if (attribute == INFO_PARAM && words == 3) {
		unsigned ordinal = w[1] & 0xffff;
		if (ordinal >= FAKE_PARAMS)
			return;
		f->param[ordinal] = (struct fake_param){w[1] >> 16, w[2] >> 18};
		if ((int)ordinal >= f->nparams)
			f->nparams = (int)ordinal + 1;
	} else if (attribute == INFO_MAX_THREADS && words == 3) {
		f->max_threads = (int)(w[0] * w[1] * w[2]);
	} else if (attribute == INFO_CLUSTER && words == 3) {
		memcpy(f->cluster, w, sizeof f->cluster);
	}
}

/* f NULL: the section of the whole module, whose records name their function by symbol. */
static void info_read(const struct elf *x, struct CUmod_st *m, struct CUfunc_st *f, const Elf64_Shdr *s)
{
	const uint8_t *p = x->data + s->sh_offset, *end = p + s->sh_size;
	uint32_t w[64];
	while (end - p >= 4) {
		unsigned format = p[0], attribute = p[1], size = (unsigned)p[2] | (unsigned)p[3] << 8;
		p += 4;
		if (format != 4)
			continue; /* the value is in the header */
		if (size > end - p)
			return;
		unsigned words = size / 4 > 64 ? 64 : size / 4;
		memcpy(w, p, (size_t)words * 4);
		p += size;
		if (f) {
			info_one(f, attribute, w, words);
		} else if (words == 2 && w[0] < x->nsym) {
			struct CUfunc_st *g = func_find(m, name_in(x->strings, x->strings_len, x->sym[w[0]].st_name));
			if (g && attribute == INFO_REGS)
				g->regs = (int)w[1];
			if (g && attribute == INFO_FRAME)
				g->local = (int)w[1];
		}
	}
}

static void func_read(const struct elf *x, struct CUmod_st *m, const char *name)
{
	struct CUfunc_st *f = &m->func[m->nfuncs++];
	snprintf(f->name, sizeof f->name, "%s", name);
	f->module = m;
	f->max_threads = 1024;
	const Elf64_Shdr *s = sec_find(x, ".nv.info.", name);
	if (s)
		info_read(x, m, f, s);
	s = sec_find(x, ".nv.shared.", name);
	if (s && s->sh_size > RESERVED_SHARED)
		f->shared = (int)s->sh_size - RESERVED_SHARED;
	f->max_dynamic = 49152 - f->shared;
	f->host = fake_host_find(name);
}

static const char *const data_sections[4] = {".nv.global", ".nv.global.init", ".nv.constant3", ".nv.constant4"};

static int section_index(const struct elf *x, unsigned shndx)
{
	for (int i = 0; i < 3; i++)
		if (shndx < x->nsec && strcmp(sec_name(x, shndx), data_sections[i]) == 0)
			return i;
	return -1;
}

/* The content that the ELF gives, or zeros. */
static int object_read(const struct elf *x, struct CUmod_st *m, const Elf64_Sym *s, const char *name)
{
	int k = section_index(x, s->st_shndx);
	if (k < 0 || m->nobjects == FAKE_OBJECTS)
		return 0;
	const Elf64_Shdr *sec = &x->sec[s->st_shndx];
	if (!m->section[k]) {
		m->section[k] = fake_module_alloc(sec->sh_size);
		if (!m->section[k])
			return CUDA_OUT_OF_MEMORY;
		void *p = (void *)(uintptr_t)m->section[k];
		if (sec->sh_type == SHT_NOBITS)
			memset(p, 0, sec->sh_size);
		else
			memcpy(p, x->data + sec->sh_offset, sec->sh_size);
	}
	if (s->st_value > sec->sh_size || s->st_size > sec->sh_size - s->st_value)
		return FAKE_INVALID_IMAGE;
	struct fake_object *o = &m->object[m->nobjects++];
	snprintf(o->name, sizeof o->name, "%s", name);
	o->at = m->section[k] + s->st_value;
	o->bytes = s->st_size;
	return 0;
}

int fake_elf_read(struct CUmod_st *m, const uint8_t *data, size_t len)
{
	struct elf x = {.data = data, .len = len};
	int r = open_elf(&x);
	m->func = calloc(FAKE_FUNCS, sizeof *m->func);
	m->object = calloc(FAKE_OBJECTS, sizeof *m->object);
	if (!m->func || !m->object)
		return CUDA_OUT_OF_MEMORY;
	for (size_t i = 0; !r && i < x.nsym; i++) {
		const Elf64_Sym *s = &x.sym[i];
		const char *name = name_in(x.strings, x.strings_len, s->st_name);
		int type = ELF64_ST_TYPE(s->st_info);
		if (type == STT_FUNC && (s->st_other & ENTRY_FLAG) && m->nfuncs < FAKE_FUNCS)
			func_read(&x, m, name);
		else if (type == STT_OBJECT)
			r = object_read(&x, m, s, name);
	}
	const Elf64_Shdr *whole = r ? NULL : sec_find(&x, ".nv.info", "");
	if (whole)
		info_read(&x, m, NULL, whole);
	return r;
}
