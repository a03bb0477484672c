/*
 * nvml.c - the fake libnvidia-ml.so.1: the calls of stages/lib/nvml_api.h.
 *
 * Settings by environment, or in fake.conf beside this library, one NAME=VALUE a line:
 *   FAKE_CUDA_GPUS    how many GPUs there are (1, at most 2)
 *   FAKE_NVML_INIT    what nvmlInit returns (0)
 *   FAKE_NVML_PIDS    processes that compute on every GPU: "12,34"; this process too once it has a context
 *   FAKE_NVML_GRAPHICS  processes that draw
 *   FAKE_NVML_HIDE    1: processes are listed by no pid of this host (a container)
 *   FAKE_CUDA_MIG     1: an instance of a GPU that is split
 *   FAKE_CUDA_MODE    compute mode: 0 default, 2 prohibited, 3 exclusive process
 *   FAKE_NVML_REASONS FAKE_NVML_POWER_NS FAKE_NVML_THERMAL_NS FAKE_NVML_TEMPERATURE FAKE_NVML_SM_MHZ
 *
 * SPDX-License-Identifier: MIT
 */
#include "../../../stages/lib/nvml_api.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct nvmlDevice_st {
	int index;
};
static struct nvmlDevice_st device[2] = {{0}, {1}};
static int started;
enum { INVALID_ARGUMENT = 2, NOT_INITIALIZED = 1 };

#define X(name, symbol, args) __attribute__((visibility("default"))) int symbol args;
NVML_CALLS(X)
#undef X

static const char *setting(const char *name)
{
	static char conf[4096], value[256];
	static int done;
	Dl_info me;
	const char *v = getenv(name);
	size_t n = strlen(name);
	if (v)
		return v;
	if (!done && dladdr(conf, &me) && me.dli_fname && strrchr(me.dli_fname, '/')) {
		char path[4096];
		snprintf(path, sizeof path, "%.*s/fake.conf", (int)(strrchr(me.dli_fname, '/') - me.dli_fname),
			 me.dli_fname);
		FILE *f = fopen(path, "re");
		if (f) {
			conf[fread(conf, 1, sizeof conf - 1, f)] = '\0';
			fclose(f);
		}
	}
	done = 1;
	for (const char *line = conf; line && *line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, name, n) == 0 && line[n] == '=') {
			snprintf(value, sizeof value, "%.*s", (int)strcspn(line + n + 1, "\n"), line + n + 1);
			return value;
		}
	}
	return NULL;
}

static long number(const char *name, long otherwise)
{
	const char *v = setting(name);
	return v && *v ? strtol(v, NULL, 0) : otherwise;
}

static int bad(nvmlDevice d)
{
	return !started ? NOT_INITIALIZED : d != &device[0] && d != &device[1] ? INVALID_ARGUMENT : NVML_OK;
}

/* What most calls are: a checked device and one number. */
#define ANSWER(value) \
	int r = bad(d); \
	if (!r) \
		*out = value; \
	return r

int nvmlInit_v2(void)
{
	int r = (int)number("FAKE_NVML_INIT", 0);
	started = !r;
	return r;
}

int nvmlSystemGetDriverVersion(char *text, unsigned room)
{
	if (!started)
		return NOT_INITIALIZED;
	snprintf(text, room, "580.159.04");
	return NVML_OK;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice *d)
{
	char mine[64];
	if (!started)
		return NOT_INITIALIZED;
	for (int i = 0; i < number("FAKE_CUDA_GPUS", 1) && i < 2; i++) {
		snprintf(mine, sizeof mine, "%s-fa4e0000-0000-4000-8000-00000000000%d",
			 number("FAKE_CUDA_MIG", 0) ? "MIG" : "GPU", i + 1);
		if (strcmp(mine, uuid) == 0) {
			*d = &device[i];
			return NVML_OK;
		}
	}
	return NVML_NOT_FOUND;
}

int nvmlDeviceGetTemperature(nvmlDevice d, int sensor, unsigned *out)
{
	if (sensor)
		return INVALID_ARGUMENT;
	ANSWER((unsigned)number("FAKE_NVML_TEMPERATURE", 34));
}
int nvmlDeviceGetPowerUsage(nvmlDevice d, unsigned *out)
{
	ANSWER(118270);
}
int nvmlDeviceGetEnforcedPowerLimit(nvmlDevice d, unsigned *out)
{
	ANSWER(700000);
}
int nvmlDeviceGetClockInfo(nvmlDevice d, int clock, unsigned *out)
{
	ANSWER(clock == NVML_CLOCK_MEM ? 3201 : (unsigned)number("FAKE_NVML_SM_MHZ", 1980));
}
int nvmlDeviceGetMaxClockInfo(nvmlDevice d, int clock, unsigned *out)
{
	ANSWER(clock == NVML_CLOCK_MEM ? 3201 : 1980);
}
int nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice d, unsigned long long *out)
{
	ANSWER((unsigned long long)number("FAKE_NVML_REASONS", 0));
}

int nvmlDeviceGetViolationStatus(nvmlDevice d, int policy, struct nvml_violation *out)
{
	int r = bad(d);
	if (r)
		return r;
	long ns = policy == NVML_POLICY_POWER	  ? number("FAKE_NVML_POWER_NS", 0) :
		  policy == NVML_POLICY_THERMAL ? number("FAKE_NVML_THERMAL_NS", 0) :
						  0;
	*out = (struct nvml_violation){1000000, (unsigned long long)ns};
	return NVML_OK;
}

int nvmlDeviceGetEccMode(nvmlDevice d, int *out, int *later)
{
	*later = 1;
	ANSWER(1);
}
int nvmlDeviceGetMigMode(nvmlDevice d, unsigned *out, unsigned *later)
{
	*later = (unsigned)number("FAKE_CUDA_MIG", 0);
	ANSWER(*later);
}
int nvmlDeviceGetPersistenceMode(nvmlDevice d, int *out)
{
	ANSWER(1);
}
int nvmlDeviceGetComputeMode(nvmlDevice d, int *out)
{
	ANSWER((int)number("FAKE_CUDA_MODE", 0));
}

/* Does this process compute on the fake GPU? The driver was opened RTLD_LOCAL, perhaps not at all. */
static int have_context(void)
{
	int (*f)(void) = NULL;
	void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	void *p = lib ? dlsym(lib, "fake_has_context") : NULL;
	memcpy(&f, &p, sizeof f);
	int yes = f && f();
	if (lib)
		dlclose(lib);
	return yes;
}

static int list(nvmlDevice d, const char *pids, int with_us, unsigned *n, struct nvml_process *p)
{
	unsigned have = 0, room = *n;
	int r = bad(d), hide = number("FAKE_NVML_HIDE", 0) != 0;
	if (r)
		return r;
	if (with_us && !hide) {
		if (have < room)
			p[have] = (struct nvml_process){.pid = (unsigned)getpid(), .bytes = 560ull << 20};
		have++;
	}
	for (char *end; pids && *pids; pids = *end ? end + 1 : end) {
		long pid = strtol(pids, &end, 10);
		if (end == pids)
			break;
		if (have < room)
			p[have] = (struct nvml_process){.pid = (unsigned)pid, .bytes = 560ull << 20};
		have++;
	}
	*n = have;
	return have > room ? NVML_INSUFFICIENT_SIZE : NVML_OK;
}

int nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice d, unsigned *n, struct nvml_process *p)
{
	return list(d, setting("FAKE_NVML_PIDS"), have_context(), n, p);
}
int nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice d, unsigned *n, struct nvml_process *p)
{
	return list(d, setting("FAKE_NVML_GRAPHICS"), 0, n, p);
}
