/*
 * test_engine_build.c - engines from their sources, by the confined compiler. Writes BUILD/engines/.
 *
 * SPDX-License-Identifier: MIT
 */
#include "../../stages/lib/engine_build.h"
#include "../../stages/lib/file.h"
#include "../../stages/lib/toolkit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void set(struct engine_file *f, const char *name, const char *text)
{
	*f = (struct engine_file){.text = BUF_INIT};
	strcpy(f->name, name);
	buf_adds(&f->text, text);
}

static const char MAIN[] = "#include <engine_protocol.h>\n#include \"kernels/two.h\"\n"
			   "int main(void) { struct engine_request q; engine_ready(); return engine_next(&q) + two() - 2; }\n";

static void build(const char *main_text, struct engine_built *b)
{
	struct engine_file f[3];
	struct err e;
	set(&f[0], "kernels/two.c", "#include \"two.h\"\nint two(void) { return 2; }\n");
	set(&f[1], "engine.c", main_text);
	set(&f[2], "kernels/two.h", "int two(void);\n");
	assert_int_equal(engine_build(f, 3, NULL, b, &e), 0);
	for (int i = 0; i < 3; i++)
		buf_free(&f[i].text);
}

static void test_builds(void **state)
{
	struct engine_built b, again;
	char sha[HASH_HEX];
	struct err e;
	(void)state;
	build(MAIN, &b);
	if (!b.ok)
		print_message("%s: %s\n%s\n", b.code, b.message, buf_str(&b.log));
	assert_true(b.ok);
	assert_string_equal(b.code, "ok");
	assert_int_equal(hash_file(b.path, sha, &e), 0);
	assert_string_equal(sha, b.sha);
	assert_true(confine_minimum(b.isolation));
	build(MAIN, &again);
	assert_string_equal(again.sha, b.sha); /* the same bytes, in another folder */
	assert_string_equal(again.path, b.path);
	engine_built_free(&b);
	engine_built_free(&again);
}

static void refused(const char *text, const char *code, const char *words)
{
	struct engine_built b;
	build(text, &b);
	assert_false(b.ok);
	assert_string_equal(b.code, code);
	assert_non_null(strstr(buf_str(&b.log), words));
	assert_string_equal(b.path, "");
	engine_built_free(&b);
}

/* Nothing of this machine but the system's headers is there to be read into a program. */
static void test_refuses(void **state)
{
	(void)state;
	refused("int main(void) { return x; }\n", "compile.error", "undeclared");
	refused("#include \"/etc/passwd\"\nint main(void) { return 0; }\n", "compile.error", "/etc/passwd: ");
	refused("#include \"/proc/self/environ\"\nint main(void) { return 0; }\n", "compile.error", "/proc/self/environ: ");
}

static void test_names(void **state)
{
	static const char *const BAD[] = {"../engine.c", "kernels/../x.c", "kernels/X.c", "kernels/.c", "engine.h", "kernels/a/b.c"};
	struct engine_built b;
	struct engine_file f;
	struct err e;
	(void)state;
	for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
		set(&f, BAD[i], "int main(void) { return 0; }\n");
		assert_int_equal(engine_build(&f, 1, NULL, &b, &e), -1);
		assert_int_equal(e.code, EX_BADINPUT);
		buf_free(&f.text);
	}
}

static void test_identity(void **state)
{
	struct engine_file f[2];
	char one[HASH_HEX], two[HASH_HEX];
	(void)state;
	set(&f[0], "kernels/a.c", "x");
	set(&f[1], "engine.c", "y");
	engine_files_sha(f, 2, one);
	assert_string_equal(f[0].name, "engine.c");
	engine_files_sha(f, 2, two);
	assert_string_equal(one, two);
	f[0].text.data[0] = 'x';
	f[1].text.data[0] = 'y';
	engine_files_sha(f, 2, two);
	assert_string_not_equal(one, two);
	buf_free(&f[0].text);
	buf_free(&f[1].text);
}

/* ---- CUDA ---- */

static const char CUDA[] = "#include <cuda_runtime.h>\n#include <cublas_v2.h>\n#include <engine_protocol.h>\n"
			   "#include \"kernels/two.cuh\"\n__global__ void k(int *x) { *x = two(); }\nint three(void);\n"
			   "int main(void) { struct engine_request q; int *x; cublasHandle_t h; cudaMalloc(&x, 4); k<<<1, 1>>>(x);\n"
			   "cublasCreate(&h); engine_ready(); return engine_next(&q) + three() - 3; }\n";

static void build_cuda(const char *main_text, struct engine_built *b)
{
	struct engine_file f[3];
	struct err e = {0};
	set(&f[0], "kernels/two.cuh", "__device__ inline int two(void) { return 2; }\n");
	set(&f[1], "engine.cu", main_text);
	set(&f[2], "kernels/three.cu", "int three(void) { return 3; }\n");
	if (engine_build(f, 3, "sm_90a", b, &e))
		fail_msg("%s", e.text);
	for (int i = 0; i < 3; i++)
		buf_free(&f[i].text);
}

/* With a comment that no build before had, else it would be remembered. */
static void cuda_refused(const char *text, const char *words)
{
	struct engine_built b;
	build_cuda(text, &b);
	assert_false(b.ok);
	assert_string_equal(b.code, "compile.error");
	if (!strstr(buf_str(&b.log), words))
		fail_msg("no '%s' in: %s", words, buf_str(&b.log));
	assert_null(strstr(buf_str(&b.log), "ts-engine-"));
	engine_built_free(&b);
}

static void test_cuda(void **state)
{
	struct engine_built b, again;
	struct toolkit t;
	struct err e;
	char sha[HASH_HEX], nvcc[1100];
	(void)state;
	if (toolkit_find(&t, &e) || snprintf(nvcc, sizeof nvcc, "%s/bin/nvcc", t.root) < 0 || access(nvcc, X_OK)) {
		print_message("no nvcc on this machine: engines in CUDA are not built\n");
		skip();
	}
	build_cuda(CUDA, &b);
	if (!b.ok)
		print_message("%s: %s\n%s\n", b.code, b.message, buf_str(&b.log));
	assert_true(b.ok);
	assert_true(confine_minimum(b.isolation));
	assert_int_equal(hash_file(b.path, sha, &e), 0);
	assert_string_equal(sha, b.sha);
	build_cuda(CUDA, &again); /* remembered: the very file, and how it was made */
	assert_true(again.ok);
	assert_string_equal(again.path, b.path);
	assert_string_equal(again.isolation, b.isolation);
	engine_built_free(&again);
	engine_built_free(&b);
	cuda_refused("int main(void) { return x; }\n", "undefined");
	cuda_refused("#include \"/etc/passwd\"\nint main(void) { return 0; }\n", "/etc/passwd");
	cuda_refused("__asm__(\".incbin \\\"/etc/passwd\\\"\");\nint main(void) { return 0; }\n", "/etc/passwd");
	cuda_refused("#include \"/proc/self/environ\"\nint main(void) { return 0; }\n", "/proc/self/environ");
}

/* A program that was changed after it was made is not taken for it. */
static void test_remembered(void **state)
{
	struct engine_built b, again;
	struct toolkit t;
	struct err e;
	(void)state;
	if (toolkit_find(&t, &e))
		skip();
	build_cuda(CUDA, &b);
	assert_int_equal(file_write(b.path, "x", 1, 0755, &e), 0);
	build_cuda(CUDA, &again);
	assert_true(again.ok && again.sha[0]);
	assert_int_equal(hash_file(again.path, b.sha, &e), 0);
	assert_string_equal(again.sha, b.sha);
	engine_built_free(&b);
	engine_built_free(&again);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_builds),
		cmocka_unit_test(test_refuses),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_identity),
		cmocka_unit_test(test_cuda),
		cmocka_unit_test(test_remembered),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
