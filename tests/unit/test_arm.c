/*
 * test_arm.c - what an arm does about a process that works or talks when nobody asked it to.
 *
 * The images here are C programs that speak the protocol themselves, as a candidate could that took
 * over its process. Needs a host compiler with a static C library.
 *
 * SPDX-License-Identifier: MIT
 */
#include "../../stages/lib/arm.h"
#include "../../stages/lib/checker_call.h"
#include "../../stages/lib/hash.h"
#include "../../stages/lib/plan.h"
#include "../../stages/lib/spec.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* AFTER is what the image does once it has replied to RUN. */
static const char IMAGE[] =
	"#include \"stages/emu/protocol.h\"\n"
	"#include <string.h>\n#include <sys/mman.h>\n#include <unistd.h>\n"
	"static volatile unsigned char *out;\n"
	"static void reply(void)\n{\n"
	"	struct emu_reply r;\n	memset(&r, 0, sizeof r);\n	r.magic = EMU_MAGIC;\n"
	"	if (write(4, &r, sizeof r) != sizeof r) _exit(1);\n}\n"
	"int main(void)\n{\n	struct emu_command c;\n"
	"	out = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, EMU_FD_RW, 0);\n"
	"	while (read(3, &c, sizeof c) == sizeof c) {\n"
	"		if (c.kind == EMU_CMD_QUIT) _exit(0);\n"
	"		reply();\n"
	"		if (c.kind == EMU_CMD_RUN) { AFTER; }\n	}\n	return 0;\n}\n";

static const char PLAN[] =
	"{\"schema\":\"touchstone/plan/1\",\"entries\":[\"k\"],\"launches\":[{\"entry\":\"k\","
	"\"grid\":[1],\"block\":[1],\"args\":[{\"in\":\"x\"},{\"in\":\"y\"},{\"out\":\"out\"},"
	"{\"axis\":\"N\",\"type\":\"i32\"}]}]}";

static struct spec *spec;
static struct plan *plan;
static struct checker *checker;
static struct checker_work work;

static int setup(void **state)
{
	(void)state;
	struct err e = {0};
	struct checker_opts o = {.spec_dir = "specs/vector_add", .trial = "test", .stage = "test"};
	struct checker_open q = {.mode = CHECKER_TINY, .index = 1, .emu = 1};

	if (spec_load(o.spec_dir, &spec, &e) < 0 || checker_start(&checker, &o, &e) < 0 ||
	    plan_parse(PLAN, sizeof PLAN - 1, "plan.json", &plan, &e) < 0 ||
	    checker_open(checker, &q, &work, &e) < 0) {
		print_error("%s\n", e.text);
		return -1;
	}
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	checker_close(checker, &work);
	checker_stop(checker);
	plan_free(plan);
	spec_free(spec);
	return 0;
}

static struct arm *start(const char *after)
{
	char dir[] = "/tmp/test_arm.XXXXXX", path[64], sha[HASH_HEX], command[256];
	struct err e = {0};
	struct arm *a = NULL;

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof path, "%s/image.c", dir);
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	fprintf(f, "#define AFTER %s\n%s", after, IMAGE);
	fclose(f);
	snprintf(command, sizeof command, "cc -static -O1 -I. -o %s/image %s", dir, path);
	if (system(command) != 0) {
		print_message("no static C library\n");
		skip();
	}
	unlink(path);
	snprintf(path, sizeof path, "%s/image", dir);
	assert_int_equal(hash_file(path, sha, &e), 0);
	struct arm_opts o = {.device = "emu", .artefact = path, .artefact_sha = sha, .spec = spec,
			     .plan = plan, .axes = &work.axes, .layout = &work.layout,
			     .in_fd = work.in_fd, .rw_fd = work.rw_fd, .timeout_ns = 2000000000};
	if (arm_open(&a, &o, &e) < 0)
		fail_msg("%s", e.text);
	unlink(path);
	rmdir(dir);
	return a;
}

static void run(struct arm *a, struct arm_result *r)
{
	struct arm_run_opts q = {.order = ARM_FORWARD};
	struct err e = {0};

	if (arm_run(a, &q, r, &e) < 0)
		fail_msg("%s", e.text);
}

/* Whoever replies first and works afterwards stands still until the next command. */
static void late_work_is_held(void **state)
{
	(void)state;
	struct arm *a = start("for (;;) out[17]++");
	struct arm_result r;

	run(a, &r);
	assert_int_equal(r.status, ARM_OK);
	volatile unsigned char *m = mmap(NULL, 4096, PROT_READ, MAP_SHARED, work.rw_fd, 0);
	assert_ptr_not_equal(m, MAP_FAILED);
	for (int i = 0; i < 100; i++) {
		unsigned char was = m[17];
		usleep(300);
		assert_int_equal(m[17], was);
	}
	assert_true(arm_late(a) == 0);
	munmap((void *)(uintptr_t)m, 4096);
	arm_close(a);
}

/* What was left to do after a reply is done on the clock of the next run. */
static void the_clock_misses_nothing(void **state)
{
	(void)state;
	struct arm *a = start("for (volatile int i = 0; i < 20000000; i++) ; reply()");
	struct arm_result r;

	run(a, &r);
	assert_int_equal(r.status, ARM_OK);
	usleep(100000); /* time enough to be done with it, were it not held */
	run(a, &r);
	assert_int_equal(r.status, ARM_OK);
	assert_true(r.elapsed_ns > 2000000);
	arm_close(a);
}

static void a_second_reply_is_refused(void **state)
{
	(void)state;
	struct arm *a = start("reply(); reply(); reply()");
	struct arm_result r;
	int runs = 0;

	do
		run(a, &r);
	while (r.status == ARM_OK && ++runs < 200);
	assert_int_equal(r.status, ARM_PROTOCOL);
	assert_non_null(strstr(r.text, "unasked"));
	arm_close(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(late_work_is_held),
		cmocka_unit_test(the_clock_misses_nothing),
		cmocka_unit_test(a_second_reply_is_refused),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
