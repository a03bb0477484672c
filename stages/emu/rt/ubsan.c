/* Undefined behaviour, told in kernel terms: the handlers that -fsanitize=undefined calls.
 *
 * SPDX-License-Identifier: MIT
 *
 * What a GPU does in a defined way although C++ does not, integer overflow and shifts, is a
 * note and not a verdict: honest hash functions live from it. Everything else ends the run.
 */
#include "rt.h"

struct source {
	const char *file;
	uint32_t line, column;
};
struct type {
	uint16_t kind, info;
	char name[];
};

#define PC ((uintptr_t)__builtin_return_address(0) - 1)

#define FAIL(s, ...)                                                                               \
	do {                                                                                       \
		emu_hot.busy = 1;                                                                  \
		report_fail(EMU_SANITIZER, PC, (int)(s)->line, (s)->file, __VA_ARGS__);            \
	} while (0)

#define NOTE(s, ...)                                                                               \
	do {                                                                                       \
		int was = emu_hot.busy;                                                            \
		emu_hot.busy = 1;                                                                  \
		report_note(PC, (int)(s)->line, (s)->file, __VA_ARGS__);                           \
		emu_hot.busy = was;                                                                \
	} while (0)

#define HANDLER2(name)                                                                             \
	void __ubsan_handle_##name(struct source *s, uintptr_t a, uintptr_t b);                    \
	void __ubsan_handle_##name(struct source *s, uintptr_t a, uintptr_t b)
#define HANDLER1(name)                                                                             \
	void __ubsan_handle_##name(struct source *s, uintptr_t a);                                 \
	void __ubsan_handle_##name(struct source *s, uintptr_t a)
#define HANDLER0(name)                                                                             \
	void __ubsan_handle_##name(struct source *s);                                              \
	void __ubsan_handle_##name(struct source *s)

HANDLER2(add_overflow)
{
	(void)a, (void)b;
	NOTE(s, "signed integer addition overflows");
}
HANDLER2(sub_overflow)
{
	(void)a, (void)b;
	NOTE(s, "signed integer subtraction overflows");
}
HANDLER2(mul_overflow)
{
	(void)a, (void)b;
	NOTE(s, "signed integer multiplication overflows");
}
HANDLER1(negate_overflow)
{
	(void)a;
	NOTE(s, "signed integer negation overflows");
}
HANDLER2(shift_out_of_bounds)
{
	(void)a;
	NOTE(s, "shift by %lld", (long long)b);
}
HANDLER2(pointer_overflow)
{
	(void)a, (void)b;
	NOTE(s, "pointer arithmetic wraps");
}
HANDLER1(load_invalid_value)
{
	NOTE(s, "a bool or enum holds %llu", (unsigned long long)a);
}
HANDLER2(divrem_overflow)
{
	(void)a, (void)b;
	FAIL(s, "integer division by zero or overflow");
}
HANDLER1(out_of_bounds)
{
	FAIL(s, "index %lld is outside the array", (long long)a);
}
HANDLER1(vla_bound_not_positive)
{
	FAIL(s, "array of %lld elements", (long long)a);
}
HANDLER1(float_cast_overflow)
{
	(void)a;
	NOTE(s, "floating-point value does not fit the integer type");
}
HANDLER0(builtin_unreachable)
{
	FAIL(s, "unreachable code is reached");
}
HANDLER0(missing_return)
{
	FAIL(s, "a function ends without a return value");
}
HANDLER0(nonnull_arg)
{
	FAIL(s, "null pointer where none may be");
}
HANDLER0(invalid_builtin)
{
	NOTE(s, "count of leading or trailing zeros of 0");
}

struct mismatch {
	struct source source;
	struct type *type;
	unsigned char log_alignment, kind;
};
void __ubsan_handle_type_mismatch_v1(struct mismatch *m, uintptr_t p);
void __ubsan_handle_type_mismatch_v1(struct mismatch *m, uintptr_t p)
{
	char where[160];
	uintptr_t alignment = (uintptr_t)1 << (m->log_alignment & 31);
	if (p & (alignment - 1))
		FAIL(&m->source,
		     "misaligned access: type %s needs a multiple of %llu, the address is %s",
		     m->type->name, (unsigned long long)alignment,
		     report_place(p, where, sizeof where));
	FAIL(&m->source, "access through a bad pointer of type %s: %s", m->type->name,
	     report_place(p, where, sizeof where));
}
