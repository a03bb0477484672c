/*
 * source.c - see source.h: rules over tokens. Bytes and credentials are in source_text.c.
 *
 * SPDX-License-Identifier: MIT
 */
#include "source.h"

#include "defence.h"
#include "lexer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct scan {
	const struct lex_token *t; /* all tokens; t[n] is LEX_END */
	size_t n;
	const struct source_rules *rules;
	struct source_finding *f;
};

static int find(struct scan *s, size_t i, const char *code, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

static int find(struct scan *s, size_t i, const char *code, const char *fmt, ...)
{
	va_list ap;
	if (!DEFENCE(code))
		return 0;
	s->f->code = code;
	s->f->line = s->t[i].line;
	va_start(ap, fmt);
	vsnprintf(s->f->message, sizeof s->f->message, fmt, ap);
	va_end(ap);
	return 1;
}

/* For "%.*s": at most 64 characters of a token. */
#define QUOTE(t) ((t).len > 64 ? 64 : (int)(t).len), (t).text

static int is(const struct scan *s, size_t i, const char *text)
{
	return i < s->n && lex_is(&s->t[i], text);
}

static int is_name(const struct scan *s, size_t i)
{
	return i < s->n && s->t[i].kind == LEX_NAME;
}

static int in_list(const struct lex_token *t, const char *const *list)
{
	for (; *list; list++)
		if (**list == t->text[0] && lex_is(t, *list))
			return 1;
	return 0;
}

static int starts(const struct lex_token *t, const char *with)
{
	return t->text[0] == with[0] && t->len >= strlen(with) && !memcmp(t->text, with, strlen(with));
}

/* Does `path` (n bytes) lie in the tree `dir`? */
static int below(const char *path, size_t n, const char *dir)
{
	size_t d = strlen(dir);
	return n > d && !memcmp(path, dir, d) && path[d] == '/';
}

static int header_ok(const struct scan *s, const char *path, size_t n)
{
	static const char *const files[] = {
		"cuda_runtime.h", "cuda_runtime_api.h", "cuda.h", "device_launch_parameters.h", "cuda_fp16.h",
		"cuda_bf16.h", "cuda_fp8.h", "cuda_fp6.h", "cuda_fp4.h", "cuda_pipeline.h", "cuda_pipeline_primitives.h",
		"cuda_awbarrier.h", "cuda_awbarrier_primitives.h", "cudaTypedefs.h", "cooperative_groups.h", "mma.h",
		"math_constants.h", "math_functions.h", "device_functions.h", "device_atomic_functions.h",
		"sm_30_intrinsics.h", "vector_functions.h", "vector_types.h", "stdint.h", "stddef.h", "limits.h",
		"float.h", "math.h", "assert.h", "stdio.h", "stdlib.h", "string.h", "cstdint", "cstddef", "climits",
		"cfloat", "cmath", "cassert", "cstdio", "cstring", "cstdlib", "type_traits", "utility", "limits",
		"array", "tuple", NULL,
	};
	static const char *const trees[] = {"cuda", "cooperative_groups", "cub", "crt", "nv", NULL};
	for (size_t i = 0; i + 1 < n; i++)
		if (path[i] == '.' && path[i + 1] == '.')
			return 0;
	for (const char *const *p = files; *p; p++)
		if (strlen(*p) == n && !memcmp(*p, path, n))
			return 1;
	for (const char *const *p = trees; *p; p++)
		if (below(path, n, *p))
			return 1;
	for (const char *const *p = s->rules->headers; p && *p; p++)
		if (below(path, n, *p) || (!strcmp(*p, "cutlass") && below(path, n, "cute")))
			return 1;
	return 0;
}

static int check_include(struct scan *s, size_t i)
{
	if (i >= s->n || s->t[i].kind != LEX_HEADER)
		return find(s, i < s->n ? i : s->n, "guard.include", "an include names its header directly");
	const struct lex_token *t = &s->t[i];
	if (t->len < 2 || !header_ok(s, t->text + 1, t->len - 2))
		return find(s, i, "guard.include", "the header %.*s is not available to kernels", QUOTE(*t));
	return 0;
}

static int check_pragma(struct scan *s, size_t i)
{
	static const char *const ok[] = {"unroll", "nounroll", "once", "nv_diag_suppress", "nv_diag_default",
					 "diag_suppress", NULL};
	if (is_name(s, i) && s->t[i].directive && in_list(&s->t[i], ok))
		return 0;
	return find(s, i < s->n ? i : s->n, "guard.directive", "#pragma %.*s is not allowed (unroll is)",
		    QUOTE(s->t[i]));
}

static int check_defined_name(struct scan *s, size_t i)
{
	if (is_name(s, i) && s->t[i].directive && lex_reserved(s->t[i].text, s->t[i].len))
		return find(s, i, "guard.reserved", "the name '%.*s' is reserved", QUOTE(s->t[i]));
	return 0;
}

/* i: the '#' that starts a directive. */
static int check_directive(struct scan *s, size_t i)
{
	static const char *const ok[] = {"if", "ifdef", "ifndef", "elif", "else", "endif", "error", "elifdef",
					 "elifndef", NULL};
	size_t k = i + 1;
	if (k >= s->n || !s->t[k].directive || s->t[k].directive == 2)
		return 0; /* a lone '#' */
	if (s->rules->expanded && !is(s, k, "pragma"))
		return 0;
	if (is(s, k, "include"))
		return check_include(s, k + 1);
	if (is(s, k, "pragma"))
		return check_pragma(s, k + 1);
	if (is(s, k, "define") || is(s, k, "undef"))
		return check_defined_name(s, k + 1);
	if (s->t[k].kind == LEX_NAME && in_list(&s->t[k], ok))
		return 0;
	return find(s, k, "guard.directive", "the directive #%.*s is not allowed", QUOTE(s->t[k]));
}

/* What __global__ and __constant__ of the emulation's headers become. */
static int of_headers(const struct scan *s, size_t i)
{
	if (!s->rules->expanded)
		return 0;
	return is(s, i, "noclone") || (is(s, i, "section") && is(s, i + 1, "(") && i + 2 < s->n &&
				       starts(&s->t[i + 2], "\"emu_constant."));
}

/* i: __attribute__. Names at the top of its list must be harmless. */
static int check_attribute(struct scan *s, size_t i)
{
	static const char *const ok[] = {
		"aligned", "always_inline", "noinline", "unused", "packed", "const", "pure", "hot", "cold",
		"may_alias", "flatten", "__aligned__", "__always_inline__", "__noinline__", "__unused__",
		"__packed__", "__const__", "__pure__", "__may_alias__", "nothrow", "__nothrow__", NULL,
	};
	int depth = 0;
	for (size_t k = i + 1; k < s->n; k++) {
		depth += is(s, k, "(") ? 1 : is(s, k, ")") ? -1 : 0;
		if (depth == 0)
			return k == i + 1 ? find(s, i, "guard.attribute", "an attribute without a list") : 0;
		if (depth == 2 && is_name(s, k) && !in_list(&s->t[k], ok) && !of_headers(s, k))
			return find(s, k, "guard.attribute", "the attribute '%.*s' is not allowed", QUOTE(s->t[k]));
	}
	return find(s, i, "guard.attribute", "an attribute list without an end");
}

/* i: the first of "[[". */
static int check_standard_attribute(struct scan *s, size_t i)
{
	static const char *const ok[] = {"nodiscard", "maybe_unused", "likely", "unlikely", "noreturn",
					 "fallthrough", "assume", "deprecated", NULL};
	int named = is_name(s, i + 2) && (is(s, i + 3, "]") || is(s, i + 3, "::") || is(s, i + 3, "("));
	if (!named || in_list(&s->t[i + 2], ok))
		return 0;
	if (is(s, i + 3, "::") || is(s, i + 2, "using"))
		return find(s, i + 2, "guard.attribute", "the attribute namespace '%.*s' is not allowed",
			    QUOTE(s->t[i + 2]));
	return 0;
}

/* Does token i - 1 make token i a declared name? "uint3 threadIdx", "void __syncthreads(" do. */
static int after_type(const struct scan *s, size_t i)
{
	static const char *const not_types[] = {
		"return", "else", "do", "case", "goto", "throw", "and", "or", "not", "xor", "bitand", "bitor",
		"compl", "sizeof", "alignof", "typename", "operator", "co_return", "co_yield", "delete", "new",
		"unroll", "__forceinline__", "volatile", NULL,
	};
	return i > 0 && is_name(s, i - 1) && s->t[i - 1].directive == s->t[i].directive &&
	       !in_list(&s->t[i - 1], not_types);
}

/* Families of intrinsics. Honest helpers called __something of another kind pass. */
static int is_intrinsic(const struct lex_token *t)
{
	static const char *const families[] = {
		"__sync", "__shfl", "__ballot", "__any", "__all", "__activemask", "__match", "__reduce_",
		"__ldg", "__ldc", "__lds", "__ldl", "__st", "__threadfence", "__nanosleep", "__expf", "__logf",
		"__log2f", "__log10f", "__powf", "__sinf", "__cosf", "__tanf", "__fdividef", "__saturatef",
		"__popc", "__clz", "__ffs", "__brev", "__byte_perm", "__funnelshift", "__f", "__d", "__h", "__int",
		"__uint", "__builtin", "__cvta", "__isShared", "__isGlobal", "__trap", "__brkpt", "__assert", NULL,
	};
	for (const char *const *p = families; *p; p++)
		if (starts(t, *p))
			return t->text[t->len - 1] != '_';
	return 0;
}

static int check_reserved(struct scan *s, size_t i)
{
	static const char *const variables[] = {"threadIdx", "blockIdx", "blockDim", "gridDim", "warpSize", NULL};
	const struct lex_token *t = &s->t[i];
	if (starts(t, "EMU_") || starts(t, "emu_") || starts(t, "TS_"))
		return find(s, i, "guard.reserved", "names that begin with %.*s belong to the harness",
			    starts(t, "TS_") ? 3 : 4, t->text);
	if (in_list(t, variables) && after_type(s, i))
		return find(s, i, "guard.reserved", "'%.*s' is declared anew", QUOTE(*t));
	if (is_intrinsic(t) && is(s, i + 1, "(") && after_type(s, i))
		return find(s, i, "guard.reserved", "'%.*s' is declared anew", QUOTE(*t));
	return 0;
}

/* Builtins of a host's compiler that no CUDA compiler has: its processor's vectors, its stack, jumps. */
static int is_host_builtin(const struct lex_token *t)
{
	static const char *const families[] = {
		"__builtin_ia32_", "__builtin_aarch64_", "__builtin_neon_", "__builtin_setjmp", "__builtin_longjmp",
		"__builtin_frame_address", "__builtin_return_address", "__builtin_extract_return", "__builtin_frob",
		"__builtin_eh_", "__builtin_unwind", "__builtin_dwarf", "__builtin_apply", "__builtin_return",
		"__builtin_stack_", "__builtin_thread_pointer", "__builtin_shuffle", "__builtin_convertvector",
		"__builtin_call_with", "__builtin_cpu_", NULL,
	};
	for (const char *const *p = families; *p; p++)
		if (starts(t, *p))
			return 1;
	return 0;
}

static int check_host(struct scan *s, size_t i)
{
	static const char *const calls[] = {"cudaMalloc", "cudaMemcpy", "cudaMemset", "cudaStream", "cudaEvent",
					    "cudaGraph", "cudaFree", "cudaLaunch", "cudaHost", "cudaFunc",
					    "cudaDeviceSynchronize", NULL};
	const struct lex_token *t = &s->t[i];
	if (is_host_builtin(t))
		return find(s, i, "guard.host_code", "'%.*s': only a host's compiler has this builtin", QUOTE(*t));
	for (const char *const *p = calls; *p; p++)
		if (starts(t, *p))
			return find(s, i, "guard.host_code", "'%.*s': only device code is accepted, the plan "
				    "launches it", QUOTE(*t));
	if (lex_is(t, "main") && is(s, i + 1, "(") && i > 0 && is_name(s, i - 1))
		return find(s, i, "guard.host_code", "main(): only device code is accepted");
	return 0;
}

static int check_name(struct scan *s, size_t i)
{
	static const char *const probes[] = {"__has_include", "__has_include_next", "__has_embed", "_Pragma",
					     "__pragma", "__FILE__", "__BASE_FILE__", "__INCLUDE_LEVEL__", "__DATE__",
					     "__TIME__", "__TIMESTAMP__", NULL};
	static const char *const assembly[] = {"asm", "__asm", "__asm__", NULL};
	static const char *const runtime[] = {"emu_hot", "emu_take_slow", "emu_thread_words", "emu_g", NULL};
	const struct lex_token *t = &s->t[i];
	if (s->rules->expanded && in_list(t, runtime))
		return find(s, i, "guard.reserved", "'%.*s' belongs to the harness", QUOTE(*t));
	if (in_list(t, probes) && !(lex_is(t, "_Pragma") && is(s, i + 1, "(") && i + 2 < s->n &&
				    (starts(&s->t[i + 2], "\"unroll") || starts(&s->t[i + 2], "\"nounroll"))))
		return find(s, i, "guard.directive", "'%.*s' is not allowed", QUOTE(*t));
	if (!s->rules->asm_ok && in_list(t, assembly))
		return find(s, i, "guard.asm", "inline assembly cannot run on this device");
	if (lex_is(t, "__attribute__") || lex_is(t, "__attribute"))
		return check_attribute(s, i);
	if (lex_is(t, "__declspec"))
		return find(s, i, "guard.attribute", "'__declspec' is not allowed");
	/* macros of the emulation's headers stand for names of its own */
	return s->rules->expanded ? is_host_builtin(t) && check_host(s, i) : check_reserved(s, i) || check_host(s, i);
}

static int check_tokens(struct scan *s)
{
	for (size_t i = 0; i < s->n; i++) {
		const struct lex_token *t = &s->t[i];
		int bad = 0;
		if (t->directive == 2)
			bad = check_directive(s, i);
		else if (t->kind == LEX_NAME)
			bad = check_name(s, i);
		else if (t->kind == LEX_PUNCT && is(s, i, "[") && is(s, i + 1, "["))
			bad = check_standard_attribute(s, i);
		else if (t->kind == LEX_PUNCT && is(s, i, "<<<"))
			bad = find(s, i, "guard.host_code", "a launch (<<<): the plan launches kernels");
		if (bad)
			return 1;
	}
	return 0;
}

static int check_odd(const struct lexer *x, struct source_finding *f)
{
	int line, odd = lex_odd(x, &line);
	if (!odd || !DEFENCE("guard.lexical"))
		return 0;
	f->code = "guard.lexical";
	f->line = line;
	snprintf(f->message, sizeof f->message, "%s",
		 odd & LEX_ODD_TRIGRAPH	      ? "a trigraph (\?\?): compilers read it differently"
		 : odd & LEX_ODD_SPLICE	      ? "blanks between a backslash and the end of the line"
		 : odd & LEX_ODD_UNTERMINATED ? "a comment, string or character without an end"
					      : "a backslash outside a string");
	return 1;
}

int source_check(const char *text, size_t len, const struct source_rules *r, struct source_finding *f)
{
	struct lexer *x = lex_open(text, len, 0);
	struct lex_token *t = NULL;
	size_t n = 0, cap = 0;
	for (int more = 1; more; n++) {
		if (n == cap) {
			cap = cap ? cap * 2 : 1024;
			t = xrealloc(t, cap * sizeof *t);
		}
		more = lex_next(x, &t[n]);
	}
	struct scan s = {t, n - 1, r, f};
	*f = (struct source_finding){.code = "ok"};
	int bad = (!r->expanded && check_odd(x, f)) || check_tokens(&s);
	free(t);
	lex_close(x);
	return bad;
}

/* Is this line a mark of the preprocessor's, `# 12 "FILE" 1`? 1: what follows is of kernel.cu, 0: it is not,
 * -1: no mark. The names are those of the box's wrapper. */
static int line_mark(const char *line, size_t n)
{
	static const char own[] = "\"kernel.cu\"";
	const char *quote = n > 3 && line[0] == '#' && line[1] == ' ' && line[2] >= '0' && line[2] <= '9'
		? memchr(line, '"', n) : NULL;
	if (!quote)
		return -1;
	return n - (size_t)(quote - line) >= sizeof own - 1 && !memcmp(quote, own, sizeof own - 1);
}

int source_expanded(const char *text, size_t len, struct source_finding *f)
{
	static const struct source_rules rules = {.expanded = 1};
	char *own = xcalloc(len + 1, 1);
	size_t n = 0;
	int in = 0;
	for (size_t at = 0; at < len;) {
		const char *nl = memchr(text + at, '\n', len - at);
		size_t bytes = nl ? (size_t)(nl - (text + at)) + 1 : len - at;
		int mark = line_mark(text + at, bytes);
		if (mark >= 0)
			in = mark;
		else if (in) {
			memcpy(own + n, text + at, bytes);
			n += bytes;
		}
		at += bytes;
	}
	int bad = source_check(own, n, &rules, f);
	f->line = 0; /* of the preprocessor's text, which nobody sees */
	free(own);
	return bad;
}

int source_names(const char *text, size_t len, const char *name)
{
	struct lexer *x = lex_open(text, len, 0);
	struct lex_token t;
	int found = 0;
	while (!found && lex_next(x, &t))
		found = t.kind == LEX_NAME && lex_is(&t, name);
	lex_close(x);
	return found;
}
