/*
 * test_gpu.c - what is known of GPUs without one: reports, the run's device.json, whose process it is,
 * lanes, the roofline. With a driver (a fake one): tests/cuda.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../../stages/lib/device.h"
#include "../../stages/lib/facts_cuda.h"
#include "../../stages/lib/file.h"
#include "../../stages/lib/gpu.h"
#include "../../stages/lib/gpu_who.h"
#include "../../stages/lib/json.h"
#include "../../stages/lib/roofline.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char scratch[256];

static int enter(void **state)
{
	const char *tmp = getenv("TMPDIR");
	(void)state;
	snprintf(scratch, sizeof scratch, "%.200s/test_gpu.XXXXXX", tmp ? tmp : "/tmp");
	return !mkdtemp(scratch) || chdir(scratch) || dir_make("trials/runs/r0001", NULL);
}

static int leave(void **state)
{
	(void)state;
	return chdir("/") || dir_remove(scratch, NULL);
}

static struct gpu hopper(int i)
{
	struct gpu g = {
		.index = i, .arch = "sm_90a", .capability = 90, .memory_bytes = 150000000000, .driver = 580,
		.cuda = 13000, .driver_version = "580.159.04", .sm_mhz_max = 1980, .mem_mhz_max = 3201,
		.power_limit_w = 700, .ecc = 1, .persistence = 1, .vmm_export = 1, .sees = 1, .others = -1,
		.compute_mode = "default", .usable = 1,
		.ceilings = {4000.25, 4500, 4340, 60, 790, 785},
		.facts = {
			.class = DEVICE_CUDA, .name = "NVIDIA H200", .slug = "nvidia-h200", .sm_count = 132,
			.max_shared = 232448, .max_shared_sm = 233472, .shared_reserved = 1024,
			.max_threads = 1024, .max_threads_sm = 2048, .max_blocks_sm = 32, .max_registers = 255,
			.max_registers_sm = 65536, .warp_size = 32, .l2_bytes = 62914560, .max_cluster = 16,
			.clusters = {0, 132, 66, 44, 33, 0, 20}, .max_grid = {2147483647, 65535, 65535},
			.max_block = {1024, 1024, 64},
		},
	};
	snprintf(g.uuid, sizeof g.uuid, "GPU-0000000%d-1111-2222-3333-444444444444", i);
	return g;
}

static void parse(const struct jsonw *w, struct gpu *g, int want)
{
	struct err e = {0};
	cJSON *j = json_parse(w->out.data, w->out.len, &JSON_OURS, "text", &e);
	assert_non_null(j);
	assert_int_equal(gpu_parse(j, "text", g, &e), want);
	if (want)
		assert_int_equal(e.code, EX_BADINPUT);
	cJSON_Delete(j);
}

static void test_report(void **state)
{
	struct gpu g = hopper(3), back;
	struct jsonw w = {0}, again = {0};
	(void)state;
	gpu_write(&g, &w, NULL);
	parse(&w, &back, 0);
	gpu_write(&back, &again, NULL);
	assert_string_equal(buf_str(&w.out), buf_str(&again.out));
	assert_int_equal(back.facts.clusters[6], 20);
	assert_int_equal(back.others, -1);
	assert_true(back.ceilings.copy_gbs == 4000.25);
	char why[GPU_WHY];
	assert_int_equal(gpu_differs(&g, &back, why), 0);
	jw_free(&w);
	jw_free(&again);
}

/* Every member is needed, once, and in range: each is taken out, and each number made absurd. */
static void test_strict(void **state)
{
	struct gpu g = hopper(0), back;
	struct jsonw w = {0};
	struct err e;
	(void)state;
	gpu_write(&g, &w, NULL);
	cJSON *whole = json_parse(w.out.data, w.out.len, &JSON_OURS, "text", &e);
	int members = 0;
	for (const cJSON *m = whole->child; m; m = m->next, members++) {
		cJSON *less = cJSON_Duplicate(whole, 1), *bad = cJSON_Duplicate(whole, 1);
		cJSON_DeleteItemFromObjectCaseSensitive(less, m->string);
		assert_int_equal(gpu_parse(less, "text", &back, &e), -1);
		assert_non_null(strstr(e.text, m->string));
		cJSON_ReplaceItemInObjectCaseSensitive(bad, m->string, cJSON_CreateNumber(-2));
		assert_int_equal(gpu_parse(bad, "text", &back, &e), -1);
		cJSON_Delete(less);
		cJSON_Delete(bad);
	}
	assert_true(members > 35);
	cJSON_AddNumberToObject(whole, "more", 1);
	assert_int_equal(gpu_parse(whole, "text", &back, &e), -1);
	cJSON_Delete(whole);
	jw_free(&w);
	static const char *const slugs[] = {"emu", "sim", "a/b", "", "NVIDIA"};
	for (size_t i = 0; i < sizeof slugs / sizeof *slugs; i++) {
		w = (struct jsonw){0};
		g = hopper(0);
		snprintf(g.facts.slug, sizeof g.facts.slug, "%s", slugs[i]);
		gpu_write(&g, &w, NULL);
		parse(&w, &back, -1);
		jw_free(&w);
	}
}

static void test_slug(void **state)
{
	static const char *const names[][2] = {
		{"NVIDIA H200", "nvidia-h200"}, {"NVIDIA H100 80GB HBM3", "nvidia-h100-80gb-hbm3"},
		{"NVIDIA A100-SXM4-40GB MIG 1g.5gb", "nvidia-a100-sxm4-40gb-mig-1g-5gb"},
		{"  (R) ", "r"}, {"", "gpu"}, {"...", "gpu"}, {"emu", "gpu"}, {"Sim", "gpu"}, {"CUDA", "gpu"},
	};
	char slug[65];
	(void)state;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		facts_slug(names[i][0], slug);
		assert_string_equal(slug, names[i][1]);
		assert_true(trial_name_ok(slug));
	}
	char longest[96];
	memset(longest, 'x', 95);
	longest[95] = '\0';
	facts_slug(longest, slug);
	assert_int_equal(strlen(slug), 64);
}

static void test_pick(void **state)
{
	struct gpu g[4] = {hopper(0), hopper(1), hopper(2), hopper(3)};
	(void)state;
	assert_int_equal(gpu_pick(g, 4, "cuda"), 0);
	g[0].usable = 0;
	assert_int_equal(gpu_pick(g, 4, "cuda"), 1);
	assert_int_equal(gpu_pick(g, 4, "nvidia-h200"), 1);
	g[2].capability = 100;
	snprintf(g[2].facts.slug, sizeof g[2].facts.slug, "nvidia-b200");
	assert_int_equal(gpu_pick(g, 4, "cuda"), 2);
	assert_int_equal(gpu_pick(g, 4, "nvidia-h200"), 1);
	assert_int_equal(gpu_pick(g, 4, "nvidia-l4"), -1);
	assert_int_equal(gpu_pick(g, 0, "cuda"), -1);
}

static void test_differs(void **state)
{
	struct gpu a = hopper(0), b = hopper(1);
	char why[GPU_WHY];
	(void)state;
	assert_int_equal(gpu_differs(&a, &b, why), 0); /* another card, another serial number */
	b.facts.clusters[4] = 32;
	assert_int_equal(gpu_differs(&a, &b, why), 1);
	assert_string_equal(why, "clusters of 4 is 32 here, 33 in the run");
	b = hopper(1);
	b.facts.sm_count = 114;
	assert_int_equal(gpu_differs(&a, &b, why), 1);
	assert_string_equal(why, "sm_count is 114 here, 132 in the run");
	b = hopper(1);
	snprintf(b.facts.name, sizeof b.facts.name, "NVIDIA L4");
	snprintf(b.facts.slug, sizeof b.facts.slug, "nvidia-l4");
	assert_int_equal(gpu_differs(&a, &b, why), 1);
	assert_non_null(strstr(why, "NVIDIA L4"));
}

static void test_list(void **state)
{
	static struct gpu g[GPU_MAX];
	static const char none[] = "{\"schema\":\"touchstone/devices/1\",\"why\":\"no driver\",\"gpus\":[]}";
	struct gpu_state s;
	struct jsonw w = {0};
	struct err e;
	char why[GPU_WHY];
	int n = 7;
	(void)state;
	assert_int_equal(gpu_list_parse(none, strlen(none), g, &n, why, &e), 0);
	assert_int_equal(n, 0);
	assert_string_equal(why, "no driver");
	assert_int_equal(gpu_list_parse("{}", 2, g, &n, why, &e), -1);
	s = (struct gpu_state){.temperature_c = 41, .power_w = 300, .sm_mhz = 1965, .throttle_reasons = 1u << 31,
			       .power_violation_ns = 5000000000, .foreign = 2, .foreign_pid = 77, .graphics = -1};
	gpu_state_write(&s, &w, NULL);
	struct gpu_state back;
	assert_int_equal(gpu_state_parse(w.out.data, w.out.len, &back, &e), 0);
	assert_memory_equal(&s, &back, sizeof s);
	jw_free(&w);
}

/* A run's device.json: used as pinned, refused when it changed or is about something else. */
static void test_of_run(void **state)
{
	struct gpu g = hopper(0), back;
	struct run r = {.name = "r0001", .device = "nvidia-h200"};
	struct facts f;
	struct err e;
	char sha[HASH_HEX];
	const char *path = "trials/runs/r0001/device.json";
	(void)state;
	assert_int_equal(facts_of_run(&r, "emu", &f, &e), 0);
	assert_int_equal(f.class, DEVICE_EMU);
	assert_int_equal(facts_of_run(&r, r.device, &f, &e), -1);
	assert_int_equal(e.code, EX_BADINPUT);
	assert_int_equal(gpu_save(&g, "13.0", path, sha, &e), 0);
	r.json = cJSON_CreateObject();
	cJSON_AddStringToObject(r.json, "device_sha256", sha);
	assert_int_equal(facts_of_run(&r, r.device, &f, &e), 0);
	assert_int_equal(f.sm_count, 132);
	char toolkit[32];
	assert_int_equal(gpu_of_run_toolkit(&r, &back, toolkit, &e), 0);
	assert_string_equal(toolkit, "13.0");
	assert_int_equal(facts_of_run(&r, "nvidia-l4", &f, &e), -1);
	r.device = "nvidia-l4";
	assert_int_equal(facts_of_run(&r, r.device, &f, &e), -1);
	r.device = "nvidia-h200";
	assert_int_equal(file_append(path, " ", &e), 0);
	assert_int_equal(facts_of_run(&r, r.device, &f, &e), -1);
	assert_non_null(strstr(e.text, "changed after the run began"));
	cJSON_Delete(r.json);
}

static pid_t hold(const char *uuid, int ready[2])
{
	struct lane l;
	char byte = 0;
	assert_int_equal(pipe(ready), 0);
	pid_t pid = fork();
	if (pid)
		return read(ready[0], &byte, 1) == 1 ? pid : -1;
	byte = lane_exclusive(&l, uuid, NULL) == 0;
	if (write(ready[1], &byte, 1) != 1)
		_exit(1);
	pause();
	_exit(0);
}

/* Two GPUs: the free one is taken; when both are held, whichever comes free. */
static void test_take(void **state)
{
	static struct gpu seen[GPU_MAX];
	struct gpu two[2] = {hopper(0), hopper(1)}, got;
	struct run r = {.name = "r0001", .device = "nvidia-h200", .json = cJSON_CreateObject()};
	struct lane lane = LANE_INIT;
	struct jsonw w = {0};
	struct err e;
	char sha[HASH_HEX];
	long holder[GPU_MAX];
	int a[2], b[2];
	(void)state;
	assert_int_equal(gpu_save(&two[0], "13.0", "trials/runs/r0001/device.json", sha, &e), 0);
	cJSON_AddStringToObject(r.json, "device_sha256", sha);
	jw_obj(&w, NULL);
	jw_str(&w, "schema", "touchstone/devices/1");
	jw_arr(&w, "gpus");
	for (int i = 0; i < 2; i++) {
		two[i].ceilings = (struct worker_ceilings){0};
		gpu_write(&two[i], &w, NULL);
	}
	jw_end(&w);
	jw_end(&w);
	assert_int_equal(file_write("trials/runs/r0001/gpus.json", w.out.data, w.out.len, 0644, &e), 0);
	pid_t first = hold(two[0].uuid, a);
	assert_int_equal(gpu_take(&r, &lane, &got, &e), 0);
	assert_string_equal(got.uuid, two[1].uuid);
	assert_true(got.ceilings.copy_gbs > 4000); /* those of the run */
	assert_string_equal(lane.mode, "exclusive");
	lane_drop(&lane);
	pid_t second = hold(two[1].uuid, b);
	assert_int_equal(gpu_lanes(&r, seen, holder, &e), 2);
	assert_int_equal(holder[0], first);
	assert_int_equal(holder[1], second);
	pid_t killer = fork();
	if (!killer) {
		usleep(150000);
		kill(second, SIGKILL);
		_exit(0);
	}
	assert_int_equal(gpu_take(&r, &lane, &got, &e), 0);
	assert_string_equal(got.uuid, two[1].uuid);
	assert_true(lane.from_ns - lane.asked_ns > 50000000); /* it waited, and says so */
	lane_drop(&lane);
	kill(first, SIGKILL);
	while (wait(NULL) > 0)
		;
	cJSON_Delete(r.json);
	jw_free(&w);
}

static void test_who(void **state)
{
	char bin[4096];
	(void)state;
	assert_int_equal(gpu_who_bin(bin, sizeof bin), 0);
	assert_int_equal(gpu_who(getpid(), bin), GPU_WHO_OURS);
	int fd[2];
	pid_t child, grandchild = 0;
	assert_int_equal(pipe(fd), 0);
	if (!(child = fork())) {
		if (!(grandchild = fork()))
			execl("/bin/sleep", "sleep", "20", (char *)NULL);
		if (grandchild && write(fd[1], &grandchild, sizeof grandchild) == sizeof grandchild)
			execl("/bin/sleep", "sleep", "20", (char *)NULL);
		_exit(1);
	}
	assert_int_equal(read(fd[0], &grandchild, sizeof grandchild), sizeof grandchild);
	usleep(100000);
	assert_int_equal(gpu_who(child, bin), GPU_WHO_OURS); /* as an engine that a stage started */
	assert_int_equal(gpu_who(grandchild, bin), GPU_WHO_FOREIGN); /* what that one starts is not */
	assert_int_equal(gpu_who(getpid(), "/etc/"), GPU_WHO_FOREIGN);
	kill(grandchild, SIGKILL);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	assert_int_equal(gpu_who(child, bin), GPU_WHO_GONE);
	close(fd[0]);
	close(fd[1]);
	assert_int_equal(gpu_who(0, bin), GPU_WHO_GONE);
}

static struct roofline roof(const char *operand, enum roofline_use use)
{
	static const char format[] =
		"{\"schema\":\"touchstone/spec/1\",\"name\":\"mm\",\"op_type\":\"gemm\",\"description\":\"x\","
		"\"axes\":{\"N\":{\"type\":\"var\"}},\"constraints\":[],"
		"\"inputs\":{\"a\":{\"shape\":[\"N\"],\"dtype\":\"float32\"}},"
		"\"outputs\":{\"c\":{\"shape\":[\"N\"],\"dtype\":\"float32\"}},"
		"\"compute\":{\"operand\":\"%s\",\"accumulator\":\"float32\"},"
		"\"reference\":{\"source\":\"reference.cu\",\"plan\":\"reference.json\"},"
		"\"workloads\":{\"public\":[{\"name\":\"w\",\"axes\":{\"N\":1000}}],\"held_out\":{\"count\":1,"
		"\"axes\":{\"N\":{\"min\":1,\"max\":9}}},\"tiny\":[{\"N\":1}]},"
		"\"cost\":{\"bytes\":\"N * 8\",\"flops\":\"N * N * N\"}}";
	char text[1600];
	struct spec *s;
	struct err e = {0};
	struct gpu g = hopper(0);
	struct roofline r;
	snprintf(text, sizeof text, format, operand);
	if (spec_parse(text, strlen(text), "spec.json", &s, &e))
		fail_msg("%s", e.text);
	roofline_of(s, &s->public[0].gpu, &g.ceilings, use, &r);
	spec_free(s);
	return r;
}

static void test_roofline(void **state)
{
	(void)state;
	struct roofline r = roof("bfloat16", ROOFLINE_FAIR);
	assert_int_equal(r.bound, ROOFLINE_COMPUTE);
	assert_true(fabs(r.floor_ns - 1e9 / 790e3) < 1e-6);
	assert_true(fabs(r.memory_ns - 8000 / 4000.25) < 1e-9);
	assert_true(roof("float32", ROOFLINE_FAIR).tflops == 60);
	assert_true(roof("float32", ROOFLINE_LIMIT).tflops > 260);
	assert_true(roof("float32", ROOFLINE_LIMIT).gbs == 4500);
	assert_true(roof("tfloat32", ROOFLINE_FAIR).tflops == 395);
	r = roof("float64", ROOFLINE_FAIR); /* no unit was measured: memory alone */
	assert_int_equal(r.bound, ROOFLINE_MEMORY);
	assert_string_equal(roofline_bound_name(r.bound), "memory");
}

/* On a machine without a driver, which the tests' is: the reason is told in one line. */
static void test_without(void **state)
{
	char name[TRIAL_NAME], why[DEVICE_WHY];
	struct gpu g;
	struct err e;
	(void)state;
	setenv("CUDA_VISIBLE_DEVICES", "", 1); /* also where there is a GPU */
	gpu_forget();
	assert_int_equal(device_resolve(NULL, name, why, &e), 0);
	assert_true(!strcmp(name, "emu") || !strcmp(name, "sim"));
	assert_non_null(strstr(why, "no GPU"));
	assert_null(strchr(why, '\n'));
	assert_int_equal(gpu_find("cuda", &g, &e), -1);
	assert_int_equal(e.code, EX_NOENV);
	assert_int_equal(device_resolve("cuda", name, why, &e), -1);
	assert_int_equal(e.code, EX_NOENV);
	assert_int_equal(device_resolve("nvidia-h200", name, why, &e), -1);
	assert_int_equal(e.code, EX_NOENV);
	assert_int_equal(device_resolve("a/b", name, why, &e), -1);
	assert_int_equal(e.code, EX_BADUSE);
	assert_int_equal(device_resolve("sim", name, why, &e), 0);
	assert_string_equal(name, "sim");
	unsetenv("CUDA_VISIBLE_DEVICES");
	gpu_forget();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_report), cmocka_unit_test(test_strict), cmocka_unit_test(test_slug),
		cmocka_unit_test(test_pick), cmocka_unit_test(test_differs), cmocka_unit_test(test_list),
		cmocka_unit_test(test_of_run), cmocka_unit_test(test_take), cmocka_unit_test(test_who),
		cmocka_unit_test(test_roofline), cmocka_unit_test(test_without),
	};
	return cmocka_run_group_tests(tests, enter, leave);
}
