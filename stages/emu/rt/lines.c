/* From an address of candidate code to its source line.
 *
 * SPDX-License-Identifier: MIT
 *
 * The candidate is compiled with -g1 -gdwarf-4, and elfscan makes its line table a loaded
 * section, emu_debugln; so the image needs no file to explain itself. An address inside an
 * inlined header function gets the nearest line of the candidate's own text before it.
 */
#include "rt.h"
#include <string.h>

extern const unsigned char __start_emu_debugln[] __attribute__((weak));
extern const unsigned char __stop_emu_debugln[] __attribute__((weak));

struct reader {
	const unsigned char *p, *end;
};

static uint64_t take(struct reader *r, unsigned n)
{
	uint64_t v = 0;
	if ((size_t)(r->end - r->p) < n) {
		r->p = r->end;
		return 0;
	}
	for (unsigned i = 0; i < n; i++)
		v |= (uint64_t)r->p[i] << (8 * i);
	r->p += n;
	return v;
}

static uint64_t leb(struct reader *r, int is_signed)
{
	uint64_t v = 0;
	unsigned shift = 0;
	while (r->p < r->end) {
		unsigned char b = *r->p++;
		if (shift < 64)
			v |= (uint64_t)(b & 127) << shift;
		shift += 7;
		if (!(b & 128)) {
			if (is_signed && (b & 64) && shift < 64)
				v |= ~(uint64_t)0 << shift;
			break;
		}
	}
	return v;
}

static const char *text(struct reader *r)
{
	const char *s = (const char *)r->p;
	while (r->p < r->end && *r->p)
		r->p++;
	if (r->p < r->end)
		r->p++;
	return s;
}

enum { MAX_FILES = 64 };

static int is_header(const char *name)
{
	size_t n = strlen(name);
	return n > 2 && !strcmp(name + n - 2, ".h");
}

/* One compilation unit. Returns the line, or 0. */
static int unit_find(struct reader u, uintptr_t pc, const char **file)
{
	const char *files[MAX_FILES] = {0};
	unsigned n_files = 1;
	unsigned version = (unsigned)take(&u, 2);
	if (version < 2 || version > 4)
		return 0;
	uint64_t header = take(&u, 4);
	struct reader program = {u.p + header, u.end};
	if (header > (size_t)(u.end - u.p))
		return 0;
	unsigned min_inst = (unsigned)take(&u, 1);
	if (version >= 4)
		take(&u, 1);
	take(&u, 1);
	int line_base = (signed char)take(&u, 1);
	unsigned line_range = (unsigned)take(&u, 1), opcode_base = (unsigned)take(&u, 1);
	const unsigned char *lengths = u.p;
	take(&u, opcode_base - 1);
	while (u.p < u.end && *u.p)
		text(&u);
	take(&u, 1);
	while (u.p < u.end && *u.p) {
		const char *name = text(&u);
		leb(&u, 0);
		leb(&u, 0);
		leb(&u, 0);
		if (n_files < MAX_FILES)
			files[n_files++] = name;
	}
	if (!line_range)
		return 0;
	uint64_t address = 0;
	uint64_t current = 1, source = 1;
	int own_line = 0, row_valid = 0;
	uint64_t row_address = 0;
	const char *own_file = NULL;
	int last_line = 0;
	const char *last_file = NULL;
	while (program.p < program.end) {
		unsigned op = (unsigned)take(&program, 1);
		int row = 0, end = 0;
		if (op >= opcode_base) {
			unsigned a = op - opcode_base;
			address += (uint64_t)(a / line_range) * min_inst;
			current += (uint64_t)(int64_t)(line_base + (int)(a % line_range));
			row = 1;
		} else if (op == 0) {
			uint64_t size = leb(&program, 0);
			struct reader x = {program.p, program.end};
			unsigned sub = (unsigned)take(&x, 1);
			if (sub == 1)
				row = end = 1;
			else if (sub == 2)
				address = take(&x, 8);
			program.p = size > (size_t)(program.end - program.p) ? program.end
									     : program.p + size;
		} else if (op == 1) {
			row = 1;
		} else if (op == 2) {
			address += leb(&program, 0) * min_inst;
		} else if (op == 3) {
			current += leb(&program, 1);
		} else if (op == 4) {
			source = leb(&program, 0);
		} else if (op == 8) {
			address += (uint64_t)((255 - opcode_base) / line_range) * min_inst;
		} else if (op == 9) {
			address += take(&program, 2);
		} else {
			for (unsigned i = 0; i < lengths[op - 1]; i++)
				leb(&program, 0);
		}
		if (!row)
			continue;
		if (row_valid && pc >= row_address && pc < address) {
			*file = last_file;
			return last_line;
		}
		row_valid = !end;
		row_address = address;
		const char *name = source < n_files ? files[source] : NULL;
		if (name && !is_header(name) && !end) {
			own_line = (int)current;
			own_file = name;
		}
		last_line = own_line;
		last_file = own_file;
		if (end) {
			address = 0;
			current = source = 1;
			own_line = 0;
			own_file = NULL;
		}
	}
	return 0;
}

int lines_find(uintptr_t pc, const char **file)
{
	struct reader r = {__start_emu_debugln, __stop_emu_debugln};
	*file = NULL;
	if (!pc || !r.p)
		return 0;
	while (r.end - r.p > 4) {
		uint64_t size = take(&r, 4);
		if (size >= 0xfffffff0u || size > (size_t)(r.end - r.p))
			return 0;
		struct reader u = {r.p, r.p + size};
		r.p += size;
		int line = unit_find(u, pc, file);
		if (line)
			return line;
	}
	return 0;
}
