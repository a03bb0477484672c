/* elfscan: says what a compiled candidate contains, and prepares it for linking.
 *
 * SPDX-License-Identifier: MIT
 *
 *     elfscan [--patch] kernel.o
 *
 * Reads one relocatable ELF64 file; prints one JSON object on stdout. Lists hold what guard
 * must refuse: "undefined" symbols outside the allow-list, "writable" data that would survive
 * a launch, "init" sections that run before main, "ifunc" symbols, "tls_init" thread-local
 * data with a value, "defined" C-named symbols that are neither an entry nor ours nor made local by
 * --patch (they could replace a library function). "entries" are the names of the EMU_ENTRY list.
 *
 * --patch rewrites the file in place: undefined thread-local arrays (extern __shared__) become
 * emu_dynamic_shared, __constant__ sections lose their write flag, names of __constant__ and __shared__
 * variables become local, the line table becomes the loaded section emu_debugln. Patching twice
 * changes nothing.
 *
 * Exit codes: 0 done, 2 usage, 3 not an object file we can read, 111 system call failed.
 * It never runs, links or loads what it reads.
 */
#define _POSIX_C_SOURCE 200809L
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned char *file;
static size_t file_bytes;
static Elf64_Shdr *sections;
static unsigned n_sections, names_index;

/* what the compiler calls in the two checking builds; the fast build defines none of them, so
 * there a candidate that names one does not link */
static const char *const allowed_prefix[] = {"__asan_", "__ubsan_", "__tsan_"};

/* what the headers use of the runtime, one for one (tests/emu/run compares) */
static const char *const runtime[] = {
    "emu_activemask", "emu_barrier",   "emu_blockDim",	  "emu_blockIdx",  "emu_clock",
    "emu_copy_async", "emu_copy_commit", "emu_copy_wait", "emu_fact",	   "emu_fence",
    "emu_gridDim",    "emu_grid_sync", "emu_hot",	  "emu_not_emulable", "emu_printf",
    "emu_spun",	      "emu_take_slow", "emu_thread",	  "emu_trap",	   "emu_warp",
    "emu_yield",
    /* memcpy and its kin in the checking builds */
    "emu_memcpy", "emu_memmove", "emu_memset"};

static const char *const allowed[] = {
    "memcpy", "memset", "memmove", "memcmp", "strlen", "_GLOBAL_OFFSET_TABLE_",
    /* libgcc helpers for operations without an instruction */
    "__divti3", "__udivti3", "__modti3", "__umodti3", "__multi3", "__popcountdi2", "__popcountsi2",
    "__clzdi2", "__ctzdi2", "__ffsdi2", "__powisf2", "__powidf2", "__mulsc3", "__muldc3",
    "__divsc3", "__divdc3", "__floattisf", "__floattidf", "__floatuntisf", "__floatuntidf",
    "__fixsfti", "__fixdfti", "__fixunssfti", "__fixunsdfti", "__extendhfsf2", "__truncsfhf2",
    "__truncdfhf2", "__aarch64_cas4_relax"};

static const char *const libm[] = {
    "acos",   "acosh",	  "asin",    "asinh",	"atan",	     "atan2",	  "atanh",  "cbrt",
    "ceil",   "copysign", "cos",     "cosh",	"erf",	     "erfc",	  "exp",    "exp10",
    "exp2",   "expm1",	  "fabs",    "fdim",	"floor",     "fma",	  "fmax",   "fmin",
    "fmod",   "frexp",	  "hypot",   "ilogb",	"j0",	     "j1",	  "jn",	    "ldexp",
    "lgamma", "llrint",	  "llround", "log",	"log10",     "log1p",	  "log2",   "logb",
    "lrint",  "lround",	  "modf",    "nan",	"nearbyint", "nextafter", "pow",    "remainder",
    "remquo", "rint",	  "round",   "scalbln", "scalbn",    "sin",	  "sincos", "sinh",
    "sqrt",   "tan",	  "tanh",    "tgamma",	"trunc",     "y0",	  "y1",	    "yn"};

static int bad(const char *what)
{
	fprintf(stderr, "elfscan: %s\n", what);
	exit(3);
}

static const void *range(uint64_t at, uint64_t n)
{
	if (at > file_bytes || n > file_bytes - at)
		bad("a table lies outside the file");
	return file + at;
}

static const char *string_at(const Elf64_Shdr *table, uint64_t at)
{
	const char *base = range(table->sh_offset, table->sh_size);
	if (at >= table->sh_size || !memchr(base + at, 0, table->sh_size - at))
		bad("a name lies outside its table");
	return base + at;
}

static const char *section_name(const Elf64_Shdr *s)
{
	return string_at(&sections[names_index], s->sh_name);
}

static int starts(const char *s, const char *prefix)
{
	return !strncmp(s, prefix, strlen(prefix));
}

static int is_allowed(const char *name)
{
	char base[32];
	size_t n = strlen(name);
	for (size_t i = 0; i < sizeof allowed_prefix / sizeof *allowed_prefix; i++)
		if (starts(name, allowed_prefix[i]))
			return 1;
	for (size_t i = 0; i < sizeof runtime / sizeof *runtime; i++)
		if (!strcmp(name, runtime[i]))
			return 1;
	for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++)
		if (!strcmp(name, allowed[i]))
			return 1;
	if (n >= sizeof base)
		return 0;
	for (size_t i = 0; i < sizeof libm / sizeof *libm; i++) {
		snprintf(base, sizeof base, "%sf", libm[i]);
		if (!strcmp(name, libm[i]) || !strcmp(name, base))
			return 1;
	}
	return 0;
}

/* what emu_suffix.h itself defines */
static int is_ours(const char *name)
{
	static const char *const ours[] = {"emu_entries", "emu_n_entries", "emu_entry_names",
					   "emu_dynamic_shared_start"};
	for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
		if (!strcmp(name, ours[i]))
			return 1;
	return 0;
}

/* The entries' names, separated by zero bytes; NULL: none. */
static const char *entry_names(size_t *n)
{
	for (unsigned i = 0; i < n_sections; i++) {
		const Elf64_Shdr *s = &sections[i];
		if (strcmp(section_name(s), "emu_names") || s->sh_type == SHT_NOBITS)
			continue;
		*n = s->sh_size;
		return range(s->sh_offset, s->sh_size);
	}
	*n = 0;
	return NULL;
}

static int is_entry(const char *name)
{
	size_t n;
	const char *p = entry_names(&n), *end = p ? p + n : p;
	for (; p && p < end; p += strnlen(p, (size_t)(end - p)) + 1)
		if (strnlen(p, (size_t)(end - p)) < (size_t)(end - p) && !strcmp(p, name))
			return 1;
	return 0;
}

static void json_string(const char *s)
{
	putchar('"');
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;
		if (c == '"' || c == '\\')
			printf("\\%c", c);
		else if (c < 32 || c > 126)
			printf("\\u%04x", c);
		else
			putchar(c);
	}
	putchar('"');
}

static int list_count;

static void list_begin(const char *name)
{
	printf("\"%s\":[", name);
	list_count = 0;
}

static void list_add(const char *s)
{
	if (list_count++)
		putchar(',');
	json_string(s);
}

static void list_end(const char *tail)
{
	printf("]%s", tail);
}

static void load(const char *path)
{
	FILE *f = fopen(path, "rb");
	if (!f) {
		perror("elfscan: cannot open the object");
		exit(111);
	}
	if (fseek(f, 0, SEEK_END)) {
		perror("elfscan: cannot seek");
		exit(111);
	}
	long n = ftell(f);
	rewind(f);
	if (n < 0 || n > 256L << 20)
		bad("file too large");
	file_bytes = (size_t)n;
	file = malloc(file_bytes + 1);
	if (!file || fread(file, 1, file_bytes, f) != file_bytes) {
		perror("elfscan: cannot read the object");
		exit(111);
	}
	fclose(f);
}

static void check(void)
{
	const Elf64_Ehdr *h = range(0, sizeof *h);
	if (memcmp(h->e_ident, ELFMAG, SELFMAG) || h->e_ident[EI_CLASS] != ELFCLASS64 ||
	    h->e_ident[EI_DATA] != ELFDATA2LSB || h->e_type != ET_REL ||
	    h->e_shentsize != sizeof(Elf64_Shdr) || h->e_shoff % 8)
		bad("not a little-endian ELF64 object");
	n_sections = h->e_shnum;
	names_index = h->e_shstrndx;
	if (!n_sections || names_index >= n_sections)
		bad("no section table");
	range(h->e_shoff, (uint64_t)n_sections * sizeof(Elf64_Shdr));
	sections = (Elf64_Shdr *)(void *)(file + h->e_shoff);
}

static const Elf64_Shdr *symbols(const Elf64_Sym **first, size_t *n)
{
	for (unsigned i = 0; i < n_sections; i++) {
		const Elf64_Shdr *s = &sections[i];
		if (s->sh_type != SHT_SYMTAB)
			continue;
		if (s->sh_link >= n_sections || s->sh_entsize != sizeof(Elf64_Sym) ||
		    s->sh_offset % 8)
			bad("odd symbol table");
		*first = range(s->sh_offset, s->sh_size);
		*n = s->sh_size / sizeof(Elf64_Sym);
		return &sections[s->sh_link];
	}
	bad("no symbol table");
	return NULL;
}

/* A variable of the kernel's own: __constant__, or __shared__ outside functions. C++ does not mangle their names,
 * so that `table` or `index` would stand for whatever libc means by them. */
static int is_variable(const Elf64_Sym *s)
{
	if (s->st_shndx == SHN_UNDEF || s->st_shndx >= n_sections)
		return 0;
	return ELF64_ST_TYPE(s->st_info) == STT_TLS ||
	       (ELF64_ST_TYPE(s->st_info) == STT_OBJECT &&
		starts(section_name(&sections[s->st_shndx]), "emu_constant."));
}

/* Whoever names symbols by number: relocations, and groups by their signature. */
static void renumber(const uint32_t *to, size_t n)
{
	for (unsigned i = 0; i < n_sections; i++) {
		Elf64_Shdr *s = &sections[i];
		if (s->sh_type == SHT_GROUP && s->sh_info < n)
			s->sh_info = to[s->sh_info];
		if (s->sh_type != SHT_RELA)
			continue;
		if (s->sh_entsize != sizeof(Elf64_Rela) || s->sh_offset % 8)
			bad("odd relocations");
		Elf64_Rela *r = (Elf64_Rela *)(uintptr_t)range(s->sh_offset, s->sh_size);
		size_t count = s->sh_size / sizeof *r; /* before they are written: a table may lie over its own header */
		for (size_t k = 0; k < count; k++) {
			uint64_t sym = ELF64_R_SYM(r[k].r_info), type = ELF64_R_TYPE(r[k].r_info);
			if (sym >= n)
				bad("a relocation of no symbol");
			r[k].r_info = ELF64_R_INFO((uint64_t)to[sym], type);
		}
	}
}

/* Local symbols come first in a table, so those that become local move there. */
static void localise(void)
{
	const Elf64_Sym *sym;
	size_t n, at = 0;
	symbols(&sym, &n);
	Elf64_Sym *sorted = calloc(n + 1, sizeof *sorted);
	uint32_t *to = calloc(n + 1, sizeof *to);
	if (!sorted || !to) {
		perror("elfscan");
		exit(111);
	}
	for (int pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < n; i++) {
			int local = ELF64_ST_BIND(sym[i].st_info) == STB_LOCAL || is_variable(&sym[i]);
			if (local == pass)
				continue;
			sorted[at] = sym[i];
			if (local)
				sorted[at].st_info = ELF64_ST_INFO(STB_LOCAL, ELF64_ST_TYPE(sym[i].st_info));
			to[i] = (uint32_t)at++;
		}
	size_t locals = 0;
	while (locals < n && ELF64_ST_BIND(sorted[locals].st_info) == STB_LOCAL)
		locals++;
	renumber(to, n);
	memcpy((void *)(uintptr_t)sym, sorted, n * sizeof *sorted);
	for (unsigned i = 0; i < n_sections; i++)
		if (sections[i].sh_type == SHT_SYMTAB)
			sections[i].sh_info = (uint32_t)locals;
	free(sorted);
	free(to);
}

static void patch(void)
{
	const Elf64_Sym *first;
	size_t n;
	const Elf64_Shdr *strings = symbols(&first, &n);
	uint32_t target = 0;
	for (size_t i = 1; i < n; i++)
		if (!strcmp(string_at(strings, first[i].st_name), "emu_dynamic_shared"))
			target = first[i].st_name;
	for (size_t i = 1; i < n; i++) {
		Elf64_Sym *s = (Elf64_Sym *)(uintptr_t)&first[i];
		if (s->st_shndx == SHN_UNDEF && ELF64_ST_TYPE(s->st_info) == STT_TLS && target)
			s->st_name = target;
	}
	for (unsigned i = 0; i < n_sections; i++) {
		Elf64_Shdr *s = &sections[i];
		char *name = (char *)(uintptr_t)section_name(s);
		if (starts(name, "emu_constant."))
			s->sh_flags &= ~(Elf64_Xword)SHF_WRITE;
		if (!strcmp(name, ".debug_line"))
			memcpy(name, "emu_debugln", 11); /* the .rela name shares these bytes */
		if (!strcmp(name, "emu_debugln"))
			s->sh_flags = SHF_ALLOC;
	}
	localise();
}

static void print_symbols(void)
{
	const Elf64_Sym *sym;
	size_t n;
	const Elf64_Shdr *strings = symbols(&sym, &n);
	list_begin("undefined");
	for (size_t i = 1; i < n; i++) {
		const char *name = string_at(strings, sym[i].st_name);
		if (sym[i].st_shndx == SHN_UNDEF && *name &&
		    ELF64_ST_TYPE(sym[i].st_info) != STT_TLS && !is_allowed(name))
			list_add(name);
	}
	list_end(",");
	list_begin("writable");
	for (size_t i = 1; i < n; i++) {
		unsigned at = sym[i].st_shndx, type = ELF64_ST_TYPE(sym[i].st_info);
		if (at == SHN_COMMON)
			list_add(string_at(strings, sym[i].st_name));
		if (at == SHN_UNDEF || at >= n_sections || type == STT_SECTION || type == STT_TLS)
			continue;
		const Elf64_Shdr *s = &sections[at];
		if ((s->sh_flags & SHF_WRITE) && (s->sh_flags & SHF_ALLOC) &&
		    !(s->sh_flags & SHF_TLS) && !starts(section_name(s), "emu_constant."))
			list_add(string_at(strings, sym[i].st_name));
	}
	int named = list_count;
	for (unsigned i = 0; i < n_sections && !named; i++) {
		const Elf64_Shdr *s = &sections[i];
		if ((s->sh_flags & SHF_WRITE) && (s->sh_flags & SHF_ALLOC) &&
		    !(s->sh_flags & SHF_TLS) && s->sh_size &&
		    !starts(section_name(s), "emu_constant.") &&
		    !starts(section_name(s), ".init_array"))
			list_add(section_name(s));
	}
	list_end(",");
	list_begin("ifunc");
	for (size_t i = 1; i < n; i++)
		if (ELF64_ST_TYPE(sym[i].st_info) == STT_GNU_IFUNC)
			list_add(string_at(strings, sym[i].st_name));
	list_end(",");
	list_begin("defined");
	for (size_t i = 1; i < n; i++) {
		const char *name = string_at(strings, sym[i].st_name);
		if (sym[i].st_shndx != SHN_UNDEF && ELF64_ST_BIND(sym[i].st_info) != STB_LOCAL &&
		    !starts(name, "_Z") && !is_ours(name) && !is_entry(name) && !is_variable(&sym[i]))
			list_add(name);
	}
	list_end(",");
}

static void print_sections(void)
{
	uint64_t shared = 0, rodata = 0, text = 0;
	size_t n;
	const char *p = entry_names(&n), *end = p ? p + n : p;
	list_begin("entries");
	for (; p && p < end; p += strnlen(p, (size_t)(end - p)) + 1)
		if (*p && strnlen(p, (size_t)(end - p)) < (size_t)(end - p))
			list_add(p);
	list_end(",");
	list_begin("init");
	for (unsigned i = 0; i < n_sections; i++) {
		static const char *const runs[] = {".init", ".fini", ".ctors", ".dtors",
						   ".preinit"};
		uint32_t t = sections[i].sh_type;
		int hit = t == SHT_INIT_ARRAY || t == SHT_FINI_ARRAY || t == SHT_PREINIT_ARRAY;
		for (size_t k = 0; k < sizeof runs / sizeof *runs; k++)
			hit |= starts(section_name(&sections[i]), runs[k]);
		if (hit && sections[i].sh_size)
			list_add(section_name(&sections[i]));
	}
	list_end(",");
	list_begin("tls_init");
	for (unsigned i = 0; i < n_sections; i++) {
		const Elf64_Shdr *s = &sections[i];
		if (!(s->sh_flags & SHF_ALLOC))
			continue;
		if (s->sh_flags & SHF_TLS) {
			uint64_t align = s->sh_addralign ? s->sh_addralign : 1;
			if (align <= 65536)
				shared = (shared + align - 1) / align * align;
			shared += s->sh_size;
			if (s->sh_type != SHT_NOBITS && s->sh_size)
				list_add(section_name(s));
		} else if (s->sh_flags & SHF_EXECINSTR) {
			text += s->sh_size;
		} else if (!(s->sh_flags & SHF_WRITE) && !starts(section_name(s), "emu_debugln")) {
			rodata += s->sh_size;
		}
	}
	list_end(",");
	printf("\"shared_bytes\":%llu,\"rodata_bytes\":%llu,\"text_bytes\":%llu}\n",
	       (unsigned long long)shared, (unsigned long long)rodata, (unsigned long long)text);
}

#ifdef __SANITIZE_ADDRESS__
/* Memory is given back by exit, and in the box the leak check could not read /proc. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}
#endif

int main(int argc, char **argv)
{
	int rewrite = argc == 3 && !strcmp(argv[1], "--patch");
	if (argc == 2 && !strcmp(argv[1], "-h")) {
		puts("usage: elfscan [--patch] kernel.o\n"
		     "Prints as JSON what guard must know of a compiled candidate.\n"
		     "--patch also prepares the object for linking, in place.");
		return 0;
	}
	if (argc != 2 + rewrite) {
		fputs("usage: elfscan [--patch] kernel.o\n", stderr);
		return 2;
	}
	const char *path = argv[1 + rewrite];
	load(path);
	check();
	putchar('{');
	print_symbols();
	print_sections();
	if (fflush(stdout)) {
		perror("elfscan: cannot write the result");
		return 111;
	}
	if (!rewrite)
		return 0;
	patch();
	FILE *f = fopen(path, "r+b");
	if (!f || fwrite(file, 1, file_bytes, f) != file_bytes || fclose(f)) {
		perror("elfscan: cannot rewrite the object");
		return 111;
	}
	return 0;
}
