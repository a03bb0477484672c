/*
 * api.c - devices, contexts, errors and settings of the fake driver.
 *
 * The numbers are those of an H200 (tests/gpu/truth/evidence-h200.txt), but for L2: a worker reads
 * three times its size before each run, which takes this host as long as a real GPU needs for a
 * thousand.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fake.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static int started;
static _Thread_local struct CUctx_st *current;
static _Thread_local int captures, spoiled;
static struct CUctx_st contexts[FAKE_GPUS];
static int visible[FAKE_GPUS], nvisible;

void fake_say(const char *format, ...)
{
	va_list ap;
	va_start(ap, format);
	fputs("fake cuda: ", stderr);
	vfprintf(stderr, format, ap);
	fputc('\n', stderr);
	va_end(ap);
}

/* --- settings --- */

static char conf[4096];

static void conf_read(void)
{
	static int done;
	Dl_info me;
	char path[4096];
	if (done || !dladdr(conf, &me) || !me.dli_fname)
		return;
	done = 1;
	const char *slash = strrchr(me.dli_fname, '/');
	snprintf(path, sizeof path, "%.*s/fake.conf", slash ? (int)(slash - me.dli_fname) : 1,
		 slash ? me.dli_fname : ".");
	FILE *f = fopen(path, "re");
	if (!f)
		return;
	conf[fread(conf, 1, sizeof conf - 1, f)] = '\0';
	fclose(f);
}

const char *fake_setting(const char *name)
{
	static _Thread_local char value[256];
	size_t n = strlen(name);
	const char *v = getenv(name);
	if (v)
		return v;
	conf_read();
	for (const char *line = conf; line && *line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, name, n) == 0 && line[n] == '=') {
			snprintf(value, sizeof value, "%.*s", (int)strcspn(line + n + 1, "\n"), line + n + 1);
			return value;
		}
	}
	return NULL;
}

long fake_number(const char *name, long otherwise)
{
	const char *v = fake_setting(name);
	return v && *v ? strtol(v, NULL, 0) : otherwise;
}

int fake_gpus(void)
{
	long n = fake_number("FAKE_CUDA_GPUS", 1);
	return n < 0 ? 0 : n > FAKE_GPUS ? FAKE_GPUS : (int)n;
}

static size_t granule = (size_t)2 << 20;

size_t fake_granule(void)
{
	return granule;
}

int fake_driver_version(void)
{
	return (int)fake_number("FAKE_CUDA_VERSION", 13000);
}

/* --- state --- */

int fake_ready(void)
{
	if (!started)
		return FAKE_NOT_INITIALIZED;
	if (!current)
		return FAKE_INVALID_CONTEXT;
	return fake_sticky();
}

int fake_ready_uncaptured(void)
{
	int r = fake_ready();
	if (!r && captures) {
		spoiled = 1;
		return FAKE_CAPTURE_UNSUPPORTED;
	}
	return r;
}

int fake_capture_begin(int delta)
{
	captures += delta;
	int was = spoiled;
	if (captures == 0)
		spoiled = 0;
	return delta < 0 ? was : captures;
}

static int index_of(const char *text, size_t n)
{
	char uuid[64];
	for (int i = 0; i < fake_gpus(); i++) {
		snprintf(uuid, sizeof uuid, "GPU-fa4e0000-0000-4000-8000-00000000000%d", i + 1);
		if (n > 4 && n <= strlen(uuid) && strncmp(uuid, text, n) == 0)
			return i;
		if (n == 1 && text[0] == '0' + i)
			return i;
	}
	return -1;
}

/* CUDA_VISIBLE_DEVICES: the first name that means nothing ends the list. */
static void visible_read(void)
{
	const char *v = getenv("CUDA_VISIBLE_DEVICES");
	nvisible = 0;
	if (!v) {
		for (int i = 0; i < fake_gpus(); i++)
			visible[nvisible++] = i;
		return;
	}
	while (*v && nvisible < FAKE_GPUS) {
		size_t n = strcspn(v, ",");
		int i = index_of(v, n);
		if (i < 0)
			break;
		visible[nvisible++] = i;
		v += n + (v[n] == ',');
	}
}

CUresult cuInit(unsigned flags)
{
	if (flags)
		return CUDA_INVALID_VALUE;
	int r = (int)fake_number("FAKE_CUDA_INIT", 0);
	if (r)
		return r;
	granule = (size_t)fake_number("FAKE_CUDA_GRANULE", 2 << 20);
	visible_read();
	if (!nvisible)
		return CUDA_NO_DEVICE;
	started = 1;
	return 0;
}

/* NVRTC asks the driver for its compile cache. There is none. */
__attribute__((visibility("default"))) CUresult cuGetExportTable(const void **table, const void *id);
CUresult cuGetExportTable(const void **table, const void *id)
{
	(void)id;
	*table = NULL;
	return FAKE_NOT_SUPPORTED;
}

CUresult cuDriverGetVersion(int *version)
{
	*version = fake_driver_version();
	return 0;
}

CUresult cuGetErrorName(CUresult r, const char **name)
{
	static const struct {
		int code;
		const char *name;
	} all[] = {
		{0, "CUDA_SUCCESS"}, {1, "CUDA_ERROR_INVALID_VALUE"}, {2, "CUDA_ERROR_OUT_OF_MEMORY"},
		{3, "CUDA_ERROR_NOT_INITIALIZED"}, {46, "CUDA_ERROR_DEVICE_UNAVAILABLE"},
		{100, "CUDA_ERROR_NO_DEVICE"}, {101, "CUDA_ERROR_INVALID_DEVICE"},
		{200, "CUDA_ERROR_INVALID_IMAGE"}, {201, "CUDA_ERROR_INVALID_CONTEXT"},
		{209, "CUDA_ERROR_NO_BINARY_FOR_GPU"}, {400, "CUDA_ERROR_INVALID_HANDLE"},
		{500, "CUDA_ERROR_NOT_FOUND"}, {600, "CUDA_ERROR_NOT_READY"},
		{700, "CUDA_ERROR_ILLEGAL_ADDRESS"}, {719, "CUDA_ERROR_LAUNCH_FAILED"},
		{720, "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE"}, {801, "CUDA_ERROR_NOT_SUPPORTED"},
		{802, "CUDA_ERROR_SYSTEM_NOT_READY"}, {803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"},
		{900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"}, {901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"},
		{903, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED"}, {907, "CUDA_ERROR_CAPTURED_EVENT"},
		{910, "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE"}, {912, "CUDA_ERROR_INVALID_CLUSTER_SIZE"},
		{999, "CUDA_ERROR_UNKNOWN"},
	};
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		if (all[i].code == r) {
			*name = all[i].name;
			return 0;
		}
	*name = NULL;
	return CUDA_INVALID_VALUE;
}

/* --- devices --- */

static int device_bad(CUdevice d)
{
	return !started ? FAKE_NOT_INITIALIZED : d < 0 || d >= nvisible ? FAKE_INVALID_DEVICE : 0;
}

CUresult cuDeviceGetCount(int *n)
{
	if (!started)
		return FAKE_NOT_INITIALIZED;
	*n = nvisible;
	return 0;
}

CUresult cuDeviceGet(CUdevice *d, int ordinal)
{
	int r = device_bad(ordinal);
	if (!r)
		*d = ordinal;
	return r;
}

CUresult cuDeviceGetName(char *name, int room, CUdevice d)
{
	int r = device_bad(d);
	if (!r)
		snprintf(name, (size_t)room, "Fake GPU (tests)%s",
			 fake_number("FAKE_CUDA_MIG", 0) ? " MIG 1g.18gb" : "");
	return r;
}

CUresult cuDeviceGetUuid_v2(uint8_t uuid[16], CUdevice d)
{
	static const uint8_t base[16] = {0xfa, 0x4e, 0, 0, 0, 0, 0x40, 0, 0x80};
	int r = device_bad(d);
	if (r)
		return r;
	memcpy(uuid, base, sizeof base);
	uuid[15] = (uint8_t)(visible[d] + 1);
	return 0;
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice d)
{
	int r = device_bad(d);
	if (!r)
		*bytes = (size_t)150110011392;
	return r;
}

CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice d)
{
	static const int fixed[][2] = {
		{1, 1024}, {2, 1024}, {3, 1024}, {4, 64}, {5, 2147483647}, {6, 65535}, {7, 65535}, {8, 49152},
		{9, 65536}, {10, 32}, {12, 65536}, {13, 1980000}, {14, 512}, {16, 132}, {17, 0}, {18, 0}, {19, 1},
		{31, 1}, {32, 1}, {34, 0}, {35, 0}, {36, 3201000}, {37, 6016}, {39, 2048}, {40, 3},
		{41, 1}, {50, 0}, {75, 9}, {76, 0}, {78, 1}, {79, 1}, {80, 1}, {81, FAKE_SHARED_SM}, {82, 65536},
		{83, 1}, {84, 0}, {86, 0}, {87, 2}, {88, 0}, {89, 1}, {90, 1}, {95, 1}, {97, FAKE_SHARED_MOST},
		{100, 0}, {102, 1}, {103, 1}, {106, 32}, {109, 134217728}, {110, 1}, {111, 1024}, {115, 1}, {116, 1},
		{120, 1}, {127, 1}, {128, 0},
	};
	int r = device_bad(d);
	if (r)
		return r;
	long l2 = fake_number("FAKE_CUDA_L2", 2 << 20);
	if (attribute == 38 || attribute == 108) {
		*value = (int)(attribute == 38 ? l2 : l2 / 8 * 5);
		return 0;
	}
	if (attribute == 33 || attribute == 20 || attribute == 133) {
		*value = attribute == 33 ? visible[d] + 1 :
			 (int)fake_number(attribute == 20 ? "FAKE_CUDA_MODE" : "FAKE_CUDA_MPS", 0);
		return 0;
	}
	for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
		if (fixed[i][0] == attribute) {
			*value = fixed[i][1];
			return 0;
		}
	fake_say("device attribute %d is not known here", attribute);
	return CUDA_INVALID_VALUE;
}

/* --- contexts --- */

CUresult cuDevicePrimaryCtxRetain(CUcontext *ctx, CUdevice d)
{
	int r = device_bad(d);
	if (!r)
		r = fake_thread_start();
	if (r)
		return r;
	contexts[d].device = d;
	contexts[d].retained = 1;
	*ctx = &contexts[d];
	return 0;
}

/* For nvml.c: this process then shows up as one that computes. */
__attribute__((visibility("default"))) int fake_has_context(void);
int fake_has_context(void)
{
	int n = 0;
	for (int i = 0; i < FAKE_GPUS; i++)
		n += contexts[i].retained;
	return n;
}

CUresult cuCtxSetCurrent(CUcontext ctx)
{
	if (!started)
		return FAKE_NOT_INITIALIZED;
	current = ctx;
	return 0;
}

CUresult cuCtxSynchronize(void)
{
	int r = fake_ready_uncaptured();
	return r ? r : fake_drain();
}

CUresult cuCtxSetLimit(int limit, size_t value)
{
	int r = fake_ready();
	if (r)
		return r;
	if (limit == CU_LIMIT_PERSISTING_L2)
		return value > (size_t)fake_number("FAKE_CUDA_L2", 2 << 20) / 8 * 5 ? CUDA_INVALID_VALUE : 0;
	return limit < 0 || limit > 8 ? CUDA_INVALID_VALUE : 0;
}

CUresult cuCtxResetPersistingL2Cache(void)
{
	return fake_ready();
}
