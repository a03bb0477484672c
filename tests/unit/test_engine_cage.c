/*
 * test_engine_cage.c - tests of engine_cage and engine_call: what an engine can still do where it runs, on the processor and on
 * the fake driver's GPU, and a model's folder whose files are links into another.
 *
 * The engine is a small C program that tries things and says on standard error what worked.
 *
 * SPDX-License-Identifier: MIT
 */
#include "../../stages/lib/engine_build.h"
#include "../../stages/lib/engine_call.h"
#include "../../stages/lib/file.h"
#include "../../stages/lib/toolkit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define GPU "GPU-fa4e0000-0000-4000-8000-000000000001"

static const char ENGINE[] =
	"#define _GNU_SOURCE\n"
	"#include <engine_protocol.h>\n#include <errno.h>\n#include <fcntl.h>\n#include <pthread.h>\n#include <stdio.h>\n#include <string.h>\n"
	"#include <sys/socket.h>\n#include <sys/wait.h>\n#include <sys/mman.h>\n#include <unistd.h>\n#include <sys/un.h>\n"
	"static void *idle(void *p) { return p; }\n"
	"static void say(const char *what, int worked) { fprintf(stderr, \"%s %s\\n\", what, worked ? \"yes\" : \"no\"); }\n"
	"int main(int argc, char **argv) {\n"
	"char path[4096]; pthread_t t; struct engine_request q; (void)argc;\n"
	"snprintf(path, sizeof path, \"%s/config.json\", argv[1]);\n"
	"int fd = open(path, O_RDONLY); char b[6] = \"\"; say(\"model\", fd >= 0 && read(fd, b, 5) == 5 && !strcmp(b, \"hello\"));\n"
	"say(\"model-write\", open(path, O_RDWR) >= 0);\n"
	"snprintf(path, sizeof path, \"%s/new\", argv[1]); say(\"model-new\", open(path, O_WRONLY | O_CREAT, 0600) >= 0);\n"
	"snprintf(path, sizeof path, \"%s/../other\", argv[1]); say(\"beside\", open(path, O_RDONLY) >= 0);\n"
	"say(\"passwd\", open(\"/etc/passwd\", O_RDONLY) >= 0); say(\"tmp\", open(\"/tmp/engine-was-here\", O_WRONLY | O_CREAT, 0600) >= 0);\n"
	"say(\"home\", open(\"/root\", O_RDONLY) >= 0);\n"
	"say(\"thread\", pthread_create(&t, NULL, idle, NULL) == 0 && pthread_join(t, NULL) == 0);\n"
	"say(\"environ\", getenv(\"TS_SECRET\") != NULL); const char *v = getenv(\"CUDA_VISIBLE_DEVICES\"); say(\"gpu\", v && *v);\n"
	"pid_t p = fork(); if (p == 0) _exit(0); if (p > 0) waitpid(p, NULL, 0); say(\"fork\", p > 0);\n"
	"int s = socket(AF_INET, SOCK_STREAM, 0); say(\"socket\", s >= 0);\n"
	"say(\"memory\", mmap(NULL, 1 << 24, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED);\n"
	"execl(\"/bin/sh\", \"sh\", \"-c\", \"echo\", (char *)0); execl(\"/usr/bin/env\", \"env\", (char *)0); say(\"sh\", 0);\n"
	"fflush(stderr); engine_ready(); while (engine_next(&q)) for (int i = 0; i < q.steps; i++) engine_step(&q, q.ids); return 0; }\n";

static char top[PATH_MAX], model[PATH_MAX + 32], program[PATH_MAX];

static void put(const char *name, const char *text)
{
	struct err e;
	char path[2 * PATH_MAX];
	snprintf(path, sizeof path, "%s/%s", top, name);
	assert_int_equal(file_write(path, text, strlen(text), 0644, &e), 0);
}

static void folder(const char *name)
{
	char path[2 * PATH_MAX];
	snprintf(path, sizeof path, "%s/%s", top, name);
	assert_int_equal(mkdir(path, 0755), 0);
}

/* As in a cache of checkpoints: the files are links into another folder, by a relative path. */
static int setup(void **state)
{
	struct engine_file f = {.name = "engine.c", .text = BUF_INIT};
	struct engine_built b;
	struct err e = {0};
	char path[2 * PATH_MAX];
	(void)state;
	strcpy(top, "/tmp/ts-cage-XXXXXX");
	if (!mkdtemp(top) || chmod(top, 0755))
		return -1;
	folder("blobs");
	folder("model");
	put("blobs/0123", "hello, model");
	put("blobs/4567", "another model's");
	put("other", "not for engines");
	snprintf(model, sizeof model, "%s/model", top);
	snprintf(path, sizeof path, "%s/config.json", model);
	if (symlink("../blobs/0123", path))
		return -1;
	buf_adds(&f.text, ENGINE);
	if (engine_build(&f, 1, NULL, &b, &e) || !b.ok)
		fail_msg("%s %s", e.text, buf_str(&b.log));
	snprintf(program, sizeof program, "%s", b.path);
	engine_built_free(&b);
	buf_free(&f.text);
	return setenv("TS_SECRET", "1", 1);
}

static int teardown(void **state)
{
	struct err e;
	(void)state;
	return dir_remove(top, &e);
}

/* Answers a batch, and what it said it could do: each line of `want` is a line of its log. */
static void run(const char *gpu, const char *want)
{
	const struct engine_start q = {.program = program, .model_dir = model, .load_s = 60, .memory = UINT64_C(1) << 30, .vocab = 512,
				       .gpu = gpu};
	const int32_t ids[4] = {5, 6, 7, 8};
	int32_t out[6];
	int64_t stamp[3];
	struct engine g;
	struct engine_batch b = {.batch = 2, .prompt = 2, .steps = 3, .ids = ids, .limit_s = 20, .out = out, .stamp = stamp, .watch = 1};
	struct engine_end end;
	enum engine_outcome o;
	struct err e = {0};
	if (engine_open(&q, &g, &o, &e))
		fail_msg("%s", e.text);
	const int opened = o == ENGINE_OK;
	if (opened)
		assert_int_equal(engine_ask(&g, &b, &o, &e), 0);
	assert_int_equal(engine_close(&g, &o, &end, &e), 0);
	if (!opened || o != ENGINE_OK)
		fail_msg("%s, %s: %s", engine_outcome_name(o), end.words, buf_str(&end.log));
	assert_true(out[0] == 5 && out[3] == 6);
	assert_true(confine_minimum(g.isolation));
	for (const char *at = want; *at;) {
		char line[64];
		const size_t n = strcspn(at, "\n");
		snprintf(line, sizeof line, "%.*s\n", (int)n, at);
		if (!strstr(buf_str(&end.log), line))
			fail_msg("no '%.*s' in:\n%s", (int)n, at, buf_str(&end.log));
		at += n + (at[n] != '\0');
	}
	engine_end_free(&end);
}

#define COMMON "model yes\nmodel-write no\nmodel-new no\nbeside no\npasswd no\ntmp no\nhome no\nthread yes\nenviron no\nsocket no\n" \
	       "memory yes\nsh no\n"

static void test_host(void **state)
{
	(void)state;
	run(NULL, COMMON "gpu no\nfork yes\n");
}

/* The fake driver lies where LD_LIBRARY_PATH says, as one of an operator's may. */
static void test_gpu(void **state)
{
	struct toolkit t;
	struct err e;
	char path[PATH_MAX], fake[PATH_MAX];
	(void)state;
#ifdef __SANITIZE_ADDRESS__
	print_message("the fake driver starts in no program with sanitizers\n");
	skip();
#endif
	const char *build = getenv("BUILD") ? getenv("BUILD") : ".build";
	snprintf(path, sizeof path, "%s/test/fake/cuda", build);
	if (!realpath(path, fake) || snprintf(path, sizeof path, "%.4000s/libcuda.so.1", fake) < 0 || access(path, R_OK) || toolkit_find(&t, &e)) {
		print_message("no fake driver, or no toolkit, on this machine\n");
		skip();
	}
	assert_int_equal(setenv("LD_LIBRARY_PATH", fake, 1), 0);
	run(GPU, COMMON "gpu yes\nfork no\n");
	run(GPU, COMMON "gpu yes\nfork no\n");
	assert_int_equal(unsetenv("LD_LIBRARY_PATH"), 0);
}

static void test_links(void **state)
{
	char path[2 * PATH_MAX], to[64];
	(void)state;
	for (int i = 0; i < 50; i++) {
		snprintf(to, sizeof to, "blobs/x%d", i);
		put(to, "x");
		snprintf(path, sizeof path, "%s/x%d.safetensors", model, i);
		snprintf(to, sizeof to, "../blobs/x%d", i);
		assert_int_equal(symlink(to, path), 0);
	}
	const struct engine_start q = {.program = program, .model_dir = model, .vocab = 512};
	struct engine g;
	enum engine_outcome o;
	struct err e = {0};
	assert_int_equal(engine_open(&q, &g, &o, &e), -1);
	assert_int_equal(e.code, EX_BADINPUT);
	assert_non_null(strstr(e.text, "too many links"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_host), cmocka_unit_test(test_gpu), cmocka_unit_test(test_links)};
	return cmocka_run_group_tests(tests, setup, teardown);
}
