/*
 * test_engine_build.c - engines from their sources, by the confined compiler. Writes BUILD/engines/.
 *
 * SPDX-License-Identifier: MIT
 */
#include "../../stages/lib/engine_build.h"
#include "../../stages/lib/file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

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
	assert_int_equal(engine_build(f, 3, b, &e), 0);
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
		assert_int_equal(engine_build(&f, 1, &b, &e), -1);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_builds),
		cmocka_unit_test(test_refuses),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_identity),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
