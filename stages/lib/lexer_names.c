/*
 * lexer_names.c - names that belong to the language, to CUDA or to Touchstone.
 *
 * SPDX-License-Identifier: MIT
 */
#include "lexer.h"

#include <ctype.h>
#include <string.h>

static const char *const KEYWORDS[] = {
	"alignas", "alignof", "and", "and_eq", "asm", "auto", "bitand", "bitor", "bool", "break", "case",
	"catch", "char", "char16_t", "char32_t", "char8_t", "class", "co_await", "co_return", "co_yield",
	"compl", "concept", "const", "const_cast", "consteval", "constexpr", "constinit", "continue",
	"decltype", "default", "delete", "do", "double", "dynamic_cast", "else", "enum", "explicit",
	"export", "extern", "false", "float", "for", "friend", "goto", "if", "inline", "int", "long",
	"mutable", "namespace", "new", "noexcept", "not", "not_eq", "nullptr", "operator", "or", "or_eq",
	"private", "protected", "public", "register", "reinterpret_cast", "requires", "restrict", "return",
	"short", "signed", "sizeof", "static", "static_assert", "static_cast", "struct", "switch",
	"template", "this", "thread_local", "throw", "true", "try", "typedef", "typeid", "typename",
	"union", "unsigned", "using", "virtual", "void", "volatile", "wchar_t", "while", "xor", "xor_eq",
};

/* Not covered by the leading underscores below. */
static const char *const OTHERS[] = {
	"NDEBUG", "NULL", "assert", "atomicAdd", "atomicAnd", "atomicCAS", "atomicDec", "atomicExch",
	"atomicInc", "atomicMax", "atomicMin", "atomicOr", "atomicSub", "atomicXor", "blockDim", "blockIdx",
	"clock", "clock64", "cuda", "defined", "dim3", "gridDim", "half", "half2", "linux", "main", "nv_bfloat16",
	"nv_bfloat162", "nvcuda", "printf", "size_t", "std", "threadIdx", "unix", "warpSize",
};

static int in_list(const char *const *list, size_t count, const char *name, size_t len)
{
	for (size_t i = 0; i < count; i++)
		if (list[i][0] == name[0] && strlen(list[i]) == len && !memcmp(list[i], name, len))
			return 1;
	return 0;
}

static int starts(const char *name, size_t len, const char *with)
{
	size_t n = strlen(with);
	return name[0] == with[0] && len >= n && !memcmp(name, with, n);
}

int lex_keyword(const char *name, size_t len)
{
	return in_list(KEYWORDS, sizeof KEYWORDS / sizeof KEYWORDS[0], name, len);
}

int lex_reserved(const char *name, size_t len)
{
	static const char *const prefixes[] = {"EMU_", "emu_", "TS_", "ts_", "AXIS_", "__", "CUDA_", "CUDART_"};
	for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++)
		if (starts(name, len, prefixes[i]))
			return 1;
	if (len > 1 && name[0] == '_' && isupper((unsigned char)name[1]))
		return 1;
	return lex_keyword(name, len) || in_list(OTHERS, sizeof OTHERS / sizeof OTHERS[0], name, len);
}
