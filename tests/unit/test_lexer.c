/*
 * test_lexer.c - tokens as the compiler sees them, comment stripping, and the source rules.
 *
 * SPDX-License-Identifier: MIT
 */
#include "../../stages/lib/lexer.h"
#include "../../stages/lib/reason.h"
#include "../../stages/lib/source.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Tokens as "kind:text@line " with the flags d (directive), D (its '#'). */
static char *show(const char *text, int keep)
{
	static const char *const kinds[] = {"end", "n", "0", "s", "c", "p", "h", "/"};
	struct lexer *x = lex_open(text, strlen(text), keep);
	struct lex_token t;
	struct buf b = BUF_INIT;
	buf_adds(&b, "");
	while (lex_next(x, &t))
		buf_addf(&b, "%s%s%s:%.*s@%d", b.len ? " " : "", kinds[t.kind],
			 t.directive == 2 ? "D" : t.directive ? "d" : "", (int)t.len, t.text, t.line);
	lex_close(x);
	return b.data;
}

static void test_tokens(void **state)
{
	(void)state;
	static const struct {
		const char *text, *want;
	} list[] = {
		{"", ""},
		{"a+b", "n:a@1 p:+@1 n:b@1"},
		{"a // x\nb /* y\n */ c", "n:a@1 n:b@2 n:c@3"},
		{"\"a//b\" 'c' L'x' u8\"q\"", "s:\"a//b\"@1 c:'c'@1 c:L'x'@1 s:u8\"q\"@1"},
		{"\"\\\"//\" x", "s:\"\\\"//\"@1 n:x@1"},
		{"R\"(a\"b\n// )\" y", "s:R\"(a\"b\n// )\"@1 n:y@2"},
		{"R\"xy()\" )xy\" z", "s:R\"xy()\" )xy\"@1 n:z@1"},
		{"uR\"(\\\n)\" z", "s:uR\"(\\\n)\"@1 n:z@2"}, /* not spliced inside */
		{"as\\\nm x", "n:asm@1 n:x@2"},
		{"/\\\n/ hidden\nseen", "n:seen@3"},
		{"// a \\\n still\nseen", "n:seen@3"},
		{"1'000 0x1p-3f 1e+5 .5 1.", "0:1'000@1 0:0x1p-3f@1 0:1e+5@1 0:.5@1 0:1.@1"},
		{"#define A 1\nb", "pD:#@1 nd:define@1 nd:A@1 0d:1@1 n:b@2"},
		{"  # include <a/b.h> // c\n", "pD:#@1 nd:include@1 hd:<a/b.h>@1"},
		{"%:include \"x\"\n", "pD:#@1 nd:include@1 hd:\"x\"@1"},
		{"#inc\\\nlude <x>\nz", "pD:#@1 nd:include@1 hd:<x>@2 n:z@3"},
		{"/**/#define B\\\n c\nd", "pD:#@1 nd:define@1 nd:B@1 nd:c@2 n:d@3"},
		{"a # b", "n:a@1 p:#@1 n:b@1"},
		{"#include MACRO\n", "pD:#@1 nd:include@1 nd:MACRO@1"},
		{"<% %> <: :> %:%:", "p:{@1 p:}@1 p:[@1 p:]@1 p:##@1"},
		{"a<::b>", "n:a@1 p:<@1 p:::@1 n:b@1 p:>@1"},
		{"k<<<1, 2>>>()", "n:k@1 p:<<<@1 0:1@1 p:,@1 0:2@1 p:>@1 p:>@1 p:>@1 p:(@1 p:)@1"},
		{"a < b", "n:a@1 p:<@1 n:b@1"},
		{"#if a < b\n", "pD:#@1 nd:if@1 nd:a@1 pd:<@1 nd:b@1"},
	};
	for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
		char *got = show(list[i].text, 0);
		if (strcmp(got, list[i].want))
			fail_msg("%s\n got  %s\n want %s", list[i].text, got, list[i].want);
		free(got);
	}
	char *got = show("a /* b */ // c\nd", 1);
	assert_string_equal(got, "n:a@1 /:/* b */@1 /:// c@1 n:d@2");
	free(got);
}

static void test_odd(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		int flags, line;
	} list[] = {
		{"a\nb", 0, 0},
		{"\n\?\?=", LEX_ODD_TRIGRAPH, 2},
		{"\"\?\?/\"", LEX_ODD_TRIGRAPH, 1},
		{"what\?\?", 0, 0},
		{"\?\? x", 0, 0},
		{"a\\ \nb", LEX_ODD_SPLICE, 1},
		{"a\\\nb", 0, 0},
		{"a\\\r\nb", LEX_ODD_SPLICE, 1},
		{"\n/* x", LEX_ODD_UNTERMINATED, 2},
		{"\"x\n\"", LEX_ODD_UNTERMINATED, 1},
		{"'", LEX_ODD_UNTERMINATED, 1},
		{"R\"a(b)\"", LEX_ODD_UNTERMINATED, 1},
		{"\\u0061sm", LEX_ODD_BACKSLASH, 1},
		{"\"\\u0061\"", 0, 0},
		{"a \\ b", LEX_ODD_BACKSLASH, 1},
		{"#include <x\n", LEX_ODD_UNTERMINATED, 1},
	};
	for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
		struct lexer *x = lex_open(list[i].text, strlen(list[i].text), 0);
		struct lex_token t;
		int line = 0;
		while (lex_next(x, &t))
			;
		int flags = lex_odd(x, &line);
		lex_close(x);
		if (flags != list[i].flags || (flags && line != list[i].line))
			fail_msg("%s: flags %d line %d", list[i].text, flags, line);
	}
}

static void test_strip(void **state)
{
	(void)state;
	static const struct {
		const char *text, *want;
	} list[] = {
		{"a // b\nc", "a\nc"},
		{"a/* b */c", "a c"},
		{"a /* b\n c */ d", "a\n d"},
		{"\"// no\" // yes", "\"// no\" "},
		{"'\"' // x\n", "'\"'\n"},
		{"R\"(/* x */)\" /* y */;", "R\"(/* x */)\" ;"},
		{"// a \\\n b\nc", "\n\nc"},
		{"x  \t\ny", "x\ny"},
		{"/* open", ""},
		{"a /\\\n/ b\nc", "a\n\nc"},
		{"", ""},
	};
	for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
		struct buf b = BUF_INIT;
		lex_strip_comments(list[i].text, strlen(list[i].text), &b);
		if (strcmp(buf_str(&b), list[i].want))
			fail_msg("%s: got '%s'", list[i].text, buf_str(&b));
		buf_free(&b);
	}
}

static void test_reserved(void **state)
{
	(void)state;
	static const char *const yes[] = {"int", "__x", "_X", "threadIdx", "EMU_A", "emu_a", "TS_A", "AXIS_N", "main",
					  "asm", "half"};
	static const char *const no[] = {"BM", "x", "_x", "kernel", "interest", "TILE", "e", "EMU"};
	for (size_t i = 0; i < sizeof yes / sizeof yes[0]; i++)
		assert_true(lex_reserved(yes[i], strlen(yes[i])));
	for (size_t i = 0; i < sizeof no / sizeof no[0]; i++)
		assert_false(lex_reserved(no[i], strlen(no[i])));
}

static void test_source_rules(void **state)
{
	(void)state;
	static const char *const trees[] = {"cutlass", NULL};
	static const struct source_rules emu = {.asm_ok = 0}, gpu = {.asm_ok = 1, .headers = trees};
	static const struct {
		const char *text, *code;
		int line;
	} list[] = {
		{"#include <cuda_fp16.h>\n#include <cuda/barrier>\n__global__ void k() { __syncthreads(); }", "ok", 0},
		{"#pragma unroll 4\nfor(;;) { if (a) __syncwarp(); else __syncwarp(); }", "ok", 0},
		{"__global__ void __launch_bounds__(256) k(const float *__restrict__ x) {}", "ok", 0},
		{"struct __align__(16) s { int a; }; extern __shared__ __align__(16) char buf[];", "ok", 0},
		{"__attribute__((aligned(16))) float a; [[maybe_unused]] int b; x[[]{return 0;}()];", "ok", 0},
		{"#define WARPS 4\n#undef WARPS\n#if WARPS > 2\n#elif 1\n#endif\n#error stop\n", "ok", 0},
		{"static __device__ float __warp_sum(float x) { return x; }", "ok", 0},
		{"float t = -threadIdx.x; return threadIdx.x;", "ok", 0},
		{"_Pragma(\"unroll\") for(;;);", "ok", 0},
		{"cudaGridDependencySynchronize();", "ok", 0},
		{"// asm cudaMalloc <<< #include <x>\nint a;", "ok", 0},
		{"const char *s = \"asm\";", "ok", 0},
		{"\n#include <stdio.hh>", "guard.include", 2},
		{"#include \"/etc/passwd\"", "guard.include", 1},
		{"#include <cuda/../../x>", "guard.include", 1},
		{"#include <cutlass/gemm.h>", "guard.include", 1},
		{"#include HEADER", "guard.include", 1},
		{"#include", "guard.include", 1},
		{"%:inc\\\nlude <secret>", "guard.include", 2},
		{"#include_next <math.h>", "guard.directive", 1},
		{"#line 7 \"x\"", "guard.directive", 1},
		{"# 7 \"x\"", "guard.directive", 1},
		{"#embed \"x\"", "guard.directive", 1},
		{"#warning x", "guard.directive", 1},
		{"#pragma GCC optimize(\"O0\")", "guard.directive", 1},
		{"#pragma omp parallel", "guard.directive", 1},
		{"#pragma message(\"x\")", "guard.directive", 1},
		{"#pragma", "guard.directive", 1},
		{"_Pragma(\"GCC x\")", "guard.directive", 1},
		{"#if __has_include(<x>)\n#endif", "guard.directive", 1},
		{"#define threadIdx x", "guard.reserved", 1},
		{"#define __syncthreads()", "guard.reserved", 1},
		{"#undef EMU_ENTRIES", "guard.reserved", 1},
		{"#define AXIS_H 3", "guard.reserved", 1},
		{"int x = emu_now();", "guard.reserved", 1},
		{"uint3 threadIdx;", "guard.reserved", 1},
		{"void __syncthreads() {}", "guard.reserved", 1},
		{"__attribute__((constructor)) void f();", "guard.attribute", 1},
		{"__attribute__((aligned(8), section(\".x\"))) int a;", "guard.attribute", 1},
		{"[[gnu::constructor]] void f();", "guard.attribute", 1},
		{"__attribute__((aligned(8)", "guard.attribute", 1},
		{"void h() { k<<<1,2>>>(); }", "guard.host_code", 1},
		{"int main() {}", "guard.host_code", 1},
		{"auto v = __builtin_ia32_addps(a, b);", "guard.host_code", 1},
		{"void f() { void *b[5]; __builtin_setjmp(b); }", "guard.host_code", 1},
		{"cudaMallocAsync(&p, 1, s);", "guard.host_code", 1},
		{"void f() { asm(\"x\"); }", "guard.asm", 1},
		{"void f() { __asm__ volatile(\"x\"); }", "guard.asm", 1},
		{"void f() { a\\\nsm(\"x\"); }", "guard.asm", 1},
		{"/* open", "guard.lexical", 1},
		{"int a\?\?(1\?\?);", "guard.lexical", 1},
	};
	for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
		struct source_finding f;
		int bad = source_check(list[i].text, strlen(list[i].text), &emu, &f);
		if (strcmp(f.code, list[i].code) || f.line != list[i].line || bad != (f.code[0] != 'o'))
			fail_msg("%s: %s line %d (%s)", list[i].text, f.code, f.line, f.message);
		assert_non_null(reason_find(f.code));
	}
	struct source_finding f;
	static const char *const fine[] = {"#include <cutlass/gemm.h>", "#include <cute/tensor.hpp>", "void f() { asm(\"x\"); }"};
	for (size_t i = 0; i < 3; i++)
		assert_false(source_check(fine[i], strlen(fine[i]), &gpu, &f));
}

/* What the preprocessor leaves: only lines of kernel.cu count, and what the headers' macros become passes. */
static void test_source_expanded(void **state)
{
	(void)state;
	static const struct {
		const char *text, *code;
	} list[] = {
		{"typedef float v __attribute__((vector_size(16)));", "guard.attribute"},
		{"__attribute__((optimize(\"O3\"))) void f();", "guard.attribute"},
		{"[[gnu::vector_size(16)]] float f();", "guard.attribute"},
		{"__attribute__((section(\".init_array\"))) int x;", "guard.attribute"},
		{"#pragma GCC optimize(\"fast-math\")", "guard.directive"},
		{"int f() { return emu_hot.busy; }", "guard.reserved"},
		{"auto v = __builtin_ia32_addps(a, b);", "guard.host_code"},
		{"#pragma unroll\nfor (;;) a[b[[] { return 1; }()]] = 1;", "ok"},
		{"extern \"C\" __attribute__((noinline, noclone)) void k();", "ok"},
		{"__attribute__((section(\"emu_constant.\" \"3\"))) const int t[2] = {1, 2};", "ok"},
		{"int f() { return emu_thread.idx.x + emu_blockIdx.x; }", "ok"},
	};
	for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
		struct source_finding f;
		char text[600];
		int n = snprintf(text, sizeof text, "# 1 \"/kit/include/emu_core.h\" 1\nextern struct emu_hot emu_hot;\n"
				 "# 1 \"kernel.cu\"\n%s\n# 7 \"kernel.cu\" 2\n# 1 \"/kit/include/emu_suffix.h\" 1\n"
				 "typedef int w __attribute__((vector_size(16)));\n", list[i].text);
		int bad = source_expanded(text, (size_t)n, &f);
		if (strcmp(f.code, list[i].code) || bad != (f.code[0] != 'o'))
			fail_msg("%s: %s (%s)", list[i].text, f.code, f.message);
	}
}

static void test_source_text(void **state)
{
	(void)state;
	struct source_finding f;
	assert_false(source_ascii("kernel.cu", "int a;\t\n", 8, 8, &f));
	assert_true(source_ascii("kernel.cu", "int a;\t\n", 8, 7, &f));
	assert_string_equal(f.code, "guard.size");
	assert_true(source_ascii("kernel.cu", "", 0, 7, &f));
	static const char *const bad[] = {"a\nb\r\n", "a\nb\x7f", "a\n\xc3\xa9", "a\n\x01", "a\n\xe2\x80\xae"};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		assert_true(source_ascii("kernel.cu", bad[i], strlen(bad[i]), 100, &f));
		assert_string_equal(f.code, "guard.ascii");
		assert_int_equal(f.line, 2);
	}
	assert_true(source_ascii("kernel.cu", "a\0b", 3, 100, &f));
	/* Joined here so that no scanner takes this file for a leak. */
	static const char *const keys[] = {"sk-" "proj-Ab1defghijklmnopqrstuvwx", "nvapi" "-abcdefghijklmnopqrst0123",
					   "AKIA" "ABCDEFGHIJKLMNO1", "gh" "p_abcdefghijklmnopqrstuvwxyz0123456789",
					   "-----BEGIN " "RSA PRIVATE KEY-----", "eyJhbGci" "OiJIUzI1NiJ9.abc",
					   "hf" "_abcdefghijklmnopqrstuvwxyzabcdefgh", "r8" "_abcdefghijklmnopqrstuvwxyz0123456789a"};
	for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
		char text[200];
		snprintf(text, sizeof text, "int a;\n// %s\n", keys[i]);
		if (!source_credential("kernel.cu", text, strlen(text), &f))
			fail_msg("%s", text);
		assert_int_equal(f.line, 2);
		assert_null(strstr(f.message, "abcdef"));
	}
	static const char *const fine[] = {"// task-------------------------------", "mask-1 + desk-2",
					   "int risk_sk = hf_size;", "// sk-abcdefghijklmnopqrstuvwxyz",
					   "// ---------- BEGIN loop", "r8_value_of_lane_0_to_31_in_register_number_0",
					   "hf_add_two_operands_of_the_elementwise_sum(a, b)"};
	for (size_t i = 0; i < sizeof fine / sizeof fine[0]; i++)
		if (source_credential("kernel.cu", fine[i], strlen(fine[i]), &f))
			fail_msg("%s: %s", fine[i], f.message);
}

static void test_reasons(void **state)
{
	(void)state;
	size_t n;
	const struct reason *r = reason_list(&n);
	for (size_t i = 0; i < n; i++) {
		if (i && strcmp(r[i - 1].code, r[i].code) >= 0)
			fail_msg("not sorted at %s", r[i].code);
		assert_ptr_equal(reason_find(r[i].code), &r[i]);
		assert_true(strcmp(r[i].code, "ok") == 0 || strchr(r[i].code, '.') != NULL);
		assert_int_equal(strspn(r[i].code, "abcdefghijklmnopqrstuvwxyz0123456789_."), strlen(r[i].code));
		assert_true(strlen(r[i].text) > 4 && r[i].text[strlen(r[i].text) - 1] != '.');
	}
	assert_null(reason_find("guard.nothing"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tokens),	 cmocka_unit_test(test_odd),
		cmocka_unit_test(test_strip),	 cmocka_unit_test(test_reserved),
		cmocka_unit_test(test_source_rules), cmocka_unit_test(test_source_expanded),
		cmocka_unit_test(test_source_text),
		cmocka_unit_test(test_reasons),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
