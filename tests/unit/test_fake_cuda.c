/*
 * test_fake_cuda.c - the fake CUDA driver (tests/fake/cuda) behaves like the one it stands for.
 *
 * Runs itself again with LD_LIBRARY_PATH at the fake. What ends in a sticky error has a process of its
 * own. The kernels are compiled by NVRTC; without it those checks are skipped, and so they are under a sanitizer.
 *
 * SPDX-License-Identifier: MIT
 */
#include "../fake/cuda/nvrtc.h"
#include "cuda_api.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char *cubin;
static size_t cubin_len;
static CUmodule module;
static CUstream stream;

#define DO(call) assert_int_equal(cu.call, CUDA_OK)

/* The emulated device's scheduler has fixed addresses, which a sanitizer keeps for itself: no kernel runs. */
#ifdef __SANITIZE_ADDRESS__
enum { KERNELS_RUN = 0 };
#else
enum { KERNELS_RUN = 1 };
#endif

/* --- in a process of its own --- */

enum { N = 1000 };
static CUmemHandle handle[3];
static CUdeviceptr at[3];

static void start(void)
{
	struct err e = {0};
	CUdevice d;
	assert_int_equal(cuda_start(&d, &e), 0);
	DO(StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	if (cubin)
		DO(ModuleLoadData(&module, cubin));
}

/* x, y and out, a granule each with one left out between them; `prot` of the inputs. */
static void memory(int prot)
{
	CUmemProp p = {.type = CU_MEM_PINNED, .handle_types = CU_MEM_POSIX_FD, .location = {CU_MEM_ON_DEVICE, 0}};
	size_t g;
	float x[N];
	DO(MemGetAllocationGranularity(&g, &p, 0));
	assert_int_equal(g, 2 << 20);
	for (int i = 0; i < 3; i++) {
		CUmemAccess a = {{CU_MEM_ON_DEVICE, 0}, CU_MEM_READ_WRITE};
		CUdeviceptr want = 0x200000000000u + (uint64_t)i * 2 * g;
		DO(MemCreate(&handle[i], g, &p, 0));
		DO(MemAddressReserve(&at[i], g, 0, want, 0));
		assert_true(at[i] == want);
		DO(MemMap(at[i], g, 0, handle[i], 0));
		DO(MemSetAccess(at[i], g, &a, 1));
		for (int k = 0; k < N; k++)
			x[k] = i < 2 ? (float)(k * (i + 1)) : -1;
		DO(MemcpyHtoD(at[i], x, sizeof x));
		a.flags = i < 2 ? prot : CU_MEM_READ_WRITE;
		DO(MemSetAccess(at[i], g, &a, 1));
	}
}

static CUresult launch(const char *name, int us)
{
	CUfunction f;
	int n = N;
	void *args[] = {&at[0], &at[1], &at[2], &n, &us};
	CUlaunch l = {.grid = {4, 1, 1}, .block = {256, 1, 1}, .stream = stream};
	CUresult r = cu.ModuleGetFunction(&f, module, name);
	if (r)
		return r;
	return cu.LaunchKernelEx(&l, f, args, NULL);
}

static int wrong(void)
{
	float out[N];
	int bad = 0;
	DO(MemcpyDtoH(out, at[2], sizeof out));
	for (int i = 0; i < N; i++)
		bad += out[i] != (float)(3 * i);
	return bad;
}

/* `then` runs in a child, with a context; what it asserts is asserted here. */
static void apart(void (*then)(void))
{
	int status;
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0) {
		setenv("CMOCKA_TEST_ABORT", "1", 1); /* a failed assertion ends this child */
		start();
		then();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

#define NEED_KERNELS \
	if (!cubin || !KERNELS_RUN) \
	skip()

/* --- tests --- */

static void every_call_is_there(void **state)
{
	struct err e = {0};
	(void)state;
	assert_int_equal(cuda_open(&e), 0);
}

static void not_for_real_do(void)
{
	char name[64];
	uint8_t uuid[16];
	int n, sms;
	DO(DeviceGetCount(&n));
	assert_int_equal(n, 1);
	DO(DeviceGetName(name, sizeof name, 0));
	assert_string_equal(name, "Fake GPU (tests)");
	DO(DeviceGetUuid(uuid, 0));
	assert_int_equal(uuid[0], 0xfa);
	DO(DeviceGetAttribute(&sms, 16, 0));
	assert_int_equal(sms, 132);
}
static void not_for_real(void **state)
{
	(void)state;
	apart(not_for_real_do);
}

static void two_gpus(void **state)
{
	(void)state;
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0) {
		struct err e = {0};
		uint8_t uuid[16];
		int n;
		setenv("CMOCKA_TEST_ABORT", "1", 1);
		setenv("FAKE_CUDA_GPUS", "2", 1);
		setenv("CUDA_VISIBLE_DEVICES", "GPU-fa4e0000-0000-4000-8000-000000000002", 1);
		assert_int_equal(cuda_open(&e), 0);
		DO(Init(0));
		DO(DeviceGetCount(&n));
		assert_int_equal(n, 1);
		DO(DeviceGetUuid(uuid, 0));
		assert_int_equal(uuid[15], 2);
		setenv("CUDA_VISIBLE_DEVICES", "none", 1);
		assert_int_equal(cu.Init(0), CUDA_NO_DEVICE);
		_exit(0);
	}
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void runs_do(void)
{
	memory(CU_MEM_READ);
	assert_int_equal(launch("add_good", 1), CUDA_OK);
	DO(StreamSynchronize(stream));
	assert_int_equal(wrong(), 0);
	assert_int_equal(launch("add_shared", 1), CUDA_OK);
	DO(StreamSynchronize(stream));
	assert_int_equal(wrong(), 0);
	assert_int_equal(launch("add_wrong", 1), CUDA_OK);
	DO(StreamSynchronize(stream));
	assert_int_equal(wrong(), 1);
}
static void runs_kernels(void **state)
{
	(void)state;
	NEED_KERNELS;
	apart(runs_do);
}

static void sticky(const char *name, int code)
{
	int v;
	float ms;
	CUevent e;
	memory(CU_MEM_READ);
	assert_int_equal(launch(name, 1), CUDA_OK);
	assert_int_equal(cu.StreamSynchronize(stream), code);
	assert_true(cuda_sticky(code));
	assert_int_equal(launch("add_good", 1), code);
	assert_int_equal(cu.MemcpyDtoH(&v, at[2], sizeof v), code);
	assert_int_equal(cu.EventCreate(&e, 0), code);
	(void)ms;
}
static void sticky_illegal(void)
{
	sticky("add_illegal", CUDA_ILLEGAL_ADDRESS);
}
static void sticky_input(void)
{
	sticky("add_write_input", CUDA_ILLEGAL_ADDRESS);
}
static void sticky_trap(void)
{
	sticky("add_trap", 719);
}
static void faults_are_sticky(void **state)
{
	(void)state;
	NEED_KERNELS;
	apart(sticky_illegal);
	apart(sticky_input);
	apart(sticky_trap);
}

static void globals_do(void)
{
	CUdeviceptr p;
	size_t n;
	int v;
	CUmodule second;
	memory(CU_MEM_READ);
	DO(ModuleGetGlobal(&p, &n, module, "add_seed"));
	assert_int_equal(n, 4);
	DO(MemcpyDtoH(&v, p, 4));
	assert_int_equal(v, 7);
	assert_int_equal(launch("add_counter", 0), CUDA_OK);
	assert_int_equal(wrong(), 0);
	assert_int_equal(launch("add_counter", 0), CUDA_OK);
	assert_int_equal(wrong(), 1);
	DO(ModuleGetGlobal(&p, &n, module, "add_calls"));
	DO(MemcpyDtoH(&v, p, 4));
	assert_int_equal(v, 2);
	DO(MemsetD8Async(p, 0, 4, stream)); /* put back: right again */
	assert_int_equal(launch("add_counter", 0), CUDA_OK);
	assert_int_equal(wrong(), 0);
	DO(ModuleLoadData(&second, cubin)); /* and another module has its own */
	CUmodule first = module;
	module = second;
	assert_int_equal(launch("add_counter", 0), CUDA_OK);
	assert_int_equal(wrong(), 0);
	DO(ModuleUnload(first));
}
static void modules_have_globals(void **state)
{
	(void)state;
	NEED_KERNELS;
	apart(globals_do);
}

static CUgraph captured(CUevent a, CUevent b, const char *kernel, int us)
{
	CUgraph g;
	DO(StreamBeginCapture(stream, CU_CAPTURE_THREAD));
	DO(EventRecordWithFlags(a, stream, CU_EVENT_EXTERNAL));
	assert_int_equal(launch(kernel, us), CUDA_OK);
	DO(EventRecordWithFlags(b, stream, CU_EVENT_EXTERNAL));
	DO(StreamEndCapture(stream, &g));
	return g;
}

static void graphs_do(void)
{
	CUevent a, b, c;
	CUgraph g;
	CUgraphExec x;
	CUgraphUpdate why;
	CUdeviceptr p;
	float ms;
	memory(CU_MEM_READ);
	DO(EventCreate(&a, 0));
	DO(EventCreate(&b, 0));
	DO(EventCreate(&c, 0));
	g = captured(a, b, "add_good", 300);
	assert_int_equal(wrong(), N); /* captured is not run */
	DO(GraphInstantiate(&x, g, 0));
	DO(GraphDestroy(g));
	DO(GraphLaunch(x, stream));
	DO(StreamSynchronize(stream));
	assert_int_equal(wrong(), 0);
	DO(EventElapsedTime(&ms, a, b));
	assert_true(ms > 0.3f && ms < 3);
	int64_t ns = (int64_t)((double)ms * 1e6 + 0.5);
	assert_int_equal(ns % 32, 0);
	g = captured(a, b, "add_wrong", 900); /* another kernel, the same shape */
	DO(GraphExecUpdate(x, g, &why));
	DO(GraphDestroy(g));
	DO(GraphLaunch(x, stream));
	DO(EventSynchronize(b));
	DO(EventElapsedTime(&ms, a, b));
	assert_true(ms > 0.9f);
	assert_int_equal(wrong(), 1);
	DO(StreamBeginCapture(stream, CU_CAPTURE_THREAD));
	DO(EventRecord(c, stream)); /* no time of its own: a dependency */
	DO(MemsetD8Async(at[2], 0, 8, stream));
	DO(StreamEndCapture(stream, &g));
	assert_int_equal(cu.GraphExecUpdate(x, g, &why), 910);
	assert_int_equal(why.result, 2);
	assert_int_not_equal(cu.EventQuery(c), CUDA_OK);
	DO(StreamBeginCapture(stream, CU_CAPTURE_THREAD));
	assert_int_equal(cu.MemAlloc(&p, 64), 900); /* forbidden, and the capture is lost */
	assert_int_equal(cu.StreamEndCapture(stream, &g), 901);
	DO(MemAlloc(&p, 64));
}
static void graphs(void **state)
{
	(void)state;
	NEED_KERNELS;
	apart(graphs_do);
}

static void limits_do(void)
{
	CUfunction f;
	size_t offset, size;
	int v;
	CUlaunchAttr attr = {.id = CU_LAUNCH_CLUSTER, .value.u = {2, 1, 1}};
	memory(CU_MEM_READ);
	int n = N, us = 0;
	void *args[] = {&at[0], &at[1], &at[2], &n, &us};
	CUlaunch l = {.grid = {4, 1, 1}, .block = {256, 1, 1}, .stream = stream, .attrs = &attr};
#define TRY(code) assert_int_equal(cu.LaunchKernelEx(&l, f, args, NULL), code)
	DO(ModuleGetFunction(&f, module, "add_shared"));
	DO(FuncGetParamInfo(f, 4, &offset, &size));
	assert_int_equal(offset, 28);
	assert_int_equal(size, 4);
	assert_int_equal(cu.FuncGetParamInfo(f, 5, &offset, &size), CUDA_INVALID_VALUE);
	DO(FuncGetAttribute(&v, CU_FUNC_SHARED, f));
	assert_int_equal(v, 1024);
	DO(FuncGetAttribute(&v, CU_FUNC_REGS, f));
	assert_true(v > 4 && v < 255);
	DO(FuncGetAttribute(&v, CU_FUNC_MAX_DYNAMIC, f));
	assert_int_equal(v, 49152 - 1024);
	assert_int_equal(cu.FuncSetAttribute(f, CU_FUNC_MAX_DYNAMIC, 232448), CUDA_INVALID_VALUE);
	DO(FuncSetAttribute(f, CU_FUNC_MAX_DYNAMIC, 232448 - 1024));
	l.shared = 232448;
	TRY(CUDA_INVALID_VALUE);
	l.shared = 232448 - 1024;
	TRY(CUDA_OK);
	DO(FuncSetAttribute(f, CU_FUNC_MAX_DYNAMIC, 0)); /* it also lowers */
	l.shared = 4096;
	TRY(CUDA_INVALID_VALUE);
	l.shared = 0;
	l.grid[0] = 0;
	TRY(CUDA_INVALID_VALUE);
	l.grid[0] = 4;
	l.block[0] = 1025;
	TRY(CUDA_INVALID_VALUE);
	l.block[0] = 256;
	l.nattrs = 1;
	TRY(CUDA_OK);
	attr.value.u[0] = 3;
	TRY(912);
	attr.value.u[0] = 16;
	l.grid[0] = 16;
	TRY(912);
	DO(FuncSetAttribute(f, CU_FUNC_NON_PORTABLE_CLUSTER, 1));
	TRY(CUDA_OK);
	l.block[0] = 1;
	l.grid[0] = 132 * 32;
	attr = (CUlaunchAttr){.id = CU_LAUNCH_COOPERATIVE, .value.u = {1}};
	TRY(CUDA_OK);
	l.grid[0]++;
	TRY(720);
	DO(StreamSynchronize(stream)); /* none of this hurt */
	assert_int_equal(cu.ModuleGetFunction(&f, module, "none"), CUDA_NOT_FOUND);
	assert_int_equal(cu.ModuleLoadData(&module, "no ELF"), 200);
}
static void limits(void **state)
{
	(void)state;
	NEED_KERNELS;
	apart(limits_do);
}

/* One process makes the memory, another maps it read-only at the same address. */
static void shared_do(void)
{
	CUmemHandle h;
	CUdeviceptr p = 0;
	int fd = -1;
	size_t g = 2 << 20;
	float v = 0, seven = 7;
	CUmemAccess ro = {{CU_MEM_ON_DEVICE, 0}, CU_MEM_READ};
	memory(CU_MEM_READ_WRITE);
	DO(MemExport(&fd, handle[0], CU_MEM_POSIX_FD, 0));
	DO(MemImport(&h, (void *)(intptr_t)fd, CU_MEM_POSIX_FD));
	close(fd);
	DO(MemAddressReserve(&p, g, 0, 0x210000000000u, 0));
	assert_int_equal(cu.MemMap(p, g, 4096, h, 0), CUDA_INVALID_VALUE);
	DO(MemMap(p, g, 0, h, 0));
	DO(MemRelease(h));
	DO(MemSetAccess(p, g, &ro, 1));
	DO(MemcpyHtoD(at[0], &seven, sizeof v)); /* seen through both */
	DO(MemcpyDtoH(&v, p, sizeof v));
	assert_true(v > 6.5f);
	assert_int_equal(cu.MemAddressFree(p, g), CUDA_INVALID_VALUE);
	DO(MemUnmap(p, g));
	DO(MemAddressFree(p, g));
	DO(MemAddressReserve(&p, g, 0, at[1], 0)); /* taken: another place, as the driver does */
	assert_true(p != at[1]);
}
static void memory_is_shared(void **state)
{
	(void)state;
	apart(shared_do);
}

/* Our own device code: every kernel that worker or checker may launch has a host build that fits. */
static void all_do(const char *path)
{
	const char *(*missing)(CUmodule, const char **), *why;
	CUmodule m;
	size_t n;
	void *p = dlsym(dlopen("libcuda.so.1", RTLD_NOW), "fake_missing");
	memcpy(&missing, &p, sizeof p);
	assert_non_null(p);
	if (access(path, R_OK))
		return;
	DO(ModuleLoadData(&m, cubin_of(path, &n)));
	const char *name = missing(m, &why);
	if (name)
		fprintf(stderr, "%s, kernel '%s': %s\n", path, name, why);
	assert_null(name);
}
static void rep_do(void)
{
	all_do("stages/gpu/rep.cu");
}
static void check_do(void)
{
	all_do("stages/gpu/check.cu");
}
static void our_kernels_are_here(void **state)
{
	(void)state;
	NEED_KERNELS;
	apart(rep_do);
	apart(check_do);
}

int main(int argc, char **argv)
{
	const char *dir = getenv("BUILD");
	char path[4096], *old = getenv("LD_LIBRARY_PATH");
	snprintf(path, sizeof path, "%s/test/fake/cuda", dir && *dir ? dir : ".build");
	if (access(path, R_OK) == 0 && (!old || !strstr(old, path))) {
		setenv("LD_LIBRARY_PATH", path, 1);
		execv(argv[0], argv);
	}
	(void)argc;
	if (nvrtc_open())
		cubin = cubin_of("tests/fake/cuda/kernels/add.cu", &cubin_len);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_call_is_there), cmocka_unit_test(not_for_real),
		cmocka_unit_test(two_gpus),	       cmocka_unit_test(runs_kernels),
		cmocka_unit_test(faults_are_sticky),   cmocka_unit_test(modules_have_globals),
		cmocka_unit_test(graphs),	       cmocka_unit_test(limits),
		cmocka_unit_test(memory_is_shared),    cmocka_unit_test(our_kernels_are_here),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
