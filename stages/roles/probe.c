/*
 * probe - what GPUs are here, and what one of them is doing.
 *
 * The only program that opens NVML, and beside worker and checker the only one that opens the driver.
 * It runs no code of anybody else's, holds no secret and writes to standard output alone. `devices`
 * makes a short context on every GPU, because only then the driver says which clusters fit;
 * `state` makes none and disturbs nothing.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cuda_api.h"
#include "facts_cuda.h"
#include "gpu.h"
#include "gpu_who.h"
#include "nvml_api.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char HELP[] =
	"usage: probe devices | probe state UUID\n"
	"\n"
	"  devices      every GPU with its facts, and why it cannot be used if so, as JSON\n"
	"  state UUID   clocks, power, temperature and who else computes on it; NVML only\n"
	"\n"
	"Started by iterate, status and bench. Exit: 0 done, also without a GPU; 2 usage; 4 state: no\n"
	"NVML or no such GPU\n";

enum { ATTR_MODE = 20, ATTR_MAJOR = 75, ATTR_MINOR = 76, ATTR_VMM = 102, ATTR_VMM_FD = 103, ATTR_MPS = 133 };
enum { OLDEST_GPU = 80, OLDEST_DRIVER = 12040, PROCESSES = 128, GONE_TRIES = 20 };

/* --- who computes there --- */

/* Processes of one kind; the list may grow between the two calls. -1: not told. */
static int processes(int (*call)(nvmlDevice, unsigned *, struct nvml_process *), nvmlDevice d,
		     struct nvml_process *p)
{
	unsigned n = PROCESSES;
	if (!call)
		return -1;
	int rc = call(d, &n, p);
	return rc == NVML_OK ? (int)n : rc == NVML_INSUFFICIENT_SIZE ? PROCESSES : -1;
}

/* Does a worker or checker of this build run here now, or a stage that may hold the reference of engines? */
static int at_work(const char *bin)
{
	static const char *const USERS[] = {"worker\n", "checker\n", "unittest\n", "judge\n", "bench\n"};
	DIR *d = opendir("/proc");
	struct dirent *f;
	int found = 0;
	while (d && !found && (f = readdir(d))) {
		char path[300], name[16] = "";
		long pid = strtol(f->d_name, NULL, 10);
		if (pid <= 0)
			continue;
		snprintf(path, sizeof path, "/proc/%ld/comm", pid);
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		ssize_t n = fd >= 0 ? read(fd, name, sizeof name - 1) : 0;
		if (fd >= 0)
			close(fd);
		name[n > 0 ? n : 0] = '\0';
		for (size_t i = 0; i < sizeof USERS / sizeof *USERS && !found; i++)
			found = !strcmp(name, USERS[i]) && gpu_who(pid, bin) == GPU_WHO_OURS;
	}
	if (d)
		closedir(d);
	return found;
}

struct who {
	int ours, others, gone; /* others: seen running, and not ours */
	int pid;                /* one of others, else of gone */
	int self;               /* this process is in the list */
};

/* 0, or -1 when the library does not tell. */
static int count(nvmlDevice d, const char *bin, struct who *w)
{
	static struct nvml_process p[PROCESSES];
	int n = processes(nvml.ComputeProcesses, d, p);
	memset(w, 0, sizeof *w);
	for (int i = 0; i < n; i++) {
		enum gpu_who who = gpu_who((long)p[i].pid, bin);
		w->self |= (long)p[i].pid == (long)getpid();
		w->ours += who == GPU_WHO_OURS;
		w->others += who == GPU_WHO_FOREIGN;
		w->gone += who == GPU_WHO_GONE;
		if (who == GPU_WHO_FOREIGN || (who == GPU_WHO_GONE && !w->others))
			w->pid = (int)p[i].pid;
	}
	return n < 0 ? -1 : 0;
}

/* Compute processes that are not ours; -1 unknown. `context`: we have one there ourselves. */
static int foreign(nvmlDevice d, int context, int *pid, int *sees)
{
	const struct timespec pause = {.tv_nsec = 25000000};
	char bin[PATH_MAX];
	struct who w;
	*pid = 0;
	if (gpu_who_bin(bin, sizeof bin) || count(d, bin, &w))
		return -1;
	/* One that has ended stays in the list for a moment; one outside our namespace stays. */
	for (int i = 0; i < GONE_TRIES && w.gone; i++) {
		nanosleep(&pause, NULL);
		if (count(d, bin, &w))
			return -1;
	}
	*sees = context ? w.self : w.ours > 0;
	*pid = w.pid;
	if (w.others || *sees || (!context && !at_work(bin)))
		return w.others + w.gone;
	/* Ours compute there and are not in the list by pids that we know: then what is in it may be ours
	 * under other numbers (a container whose processes have pids of their own). */
	*pid = 0;
	return -1;
}

/* --- one GPU --- */

static int attribute(CUdevice dev, int which)
{
	int v = 0;
	return cu.DeviceGetAttribute(&v, which, dev) == CUDA_OK ? v : -1;
}

static void put_uuid(const uint8_t raw[16], const char *kind, char out[GPU_UUID])
{
	int n = snprintf(out, GPU_UUID, "%s", kind);
	for (int i = 0; i < 16; i++)
		n += snprintf(out + n, GPU_UUID - (size_t)n, "%s%02x",
			      i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", raw[i]);
}

/* NVML's handle of the same GPU; NULL without NVML. An instance of a GPU has a name of its own kind. */
static nvmlDevice find(CUdevice dev, int have_nvml, struct gpu *g)
{
	uint8_t raw[16] = {0};
	nvmlDevice d = NULL;
	g->mig = strstr(g->facts.name, " MIG ") != NULL;
	cu.DeviceGetUuid(raw, dev);
	put_uuid(raw, g->mig ? "MIG-" : "GPU-", g->uuid);
	if (!have_nvml || NVML(HandleByUUID, g->uuid, &d) == NVML_OK)
		return d;
	struct gpu other;
	put_uuid(raw, g->mig ? "GPU-" : "MIG-", other.uuid);
	if (NVML(HandleByUUID, other.uuid, &d) != NVML_OK)
		return NULL;
	g->mig = !g->mig;
	memcpy(g->uuid, other.uuid, sizeof g->uuid);
	return d;
}

static const char *mode_name(int mode)
{
	static const char *const names[] = {"default", "exclusive_thread", "prohibited", "exclusive_process"};
	return mode >= 0 && mode < 4 ? names[mode] : "unknown";
}

static void ask_nvml(nvmlDevice d, struct gpu *g)
{
	unsigned v = 0;
	int now = 0, later = 0;
	if (NVML(MaxClock, d, NVML_CLOCK_SM, &v) == NVML_OK)
		g->sm_mhz_max = (int)v;
	if (NVML(MaxClock, d, NVML_CLOCK_MEM, &v) == NVML_OK)
		g->mem_mhz_max = (int)v;
	if (NVML(PowerLimit, d, &v) == NVML_OK)
		g->power_limit_w = (int)(v / 1000);
	g->ecc = NVML(EccMode, d, &now, &later) == NVML_OK ? now == 1 : -1;
	g->persistence = NVML(Persistence, d, &now) == NVML_OK ? now == 1 : -1;
	unsigned split = 0, soon = 0;
	if (NVML(MigMode, d, &split, &soon) == NVML_OK && split == 1)
		g->mig = 1;
}

/* A daemon that does not serve this GPU harms nobody: the driver knows, where it can be asked. */
static int mps_here(CUdevice dev)
{
	const char *dir = getenv("CUDA_MPS_PIPE_DIRECTORY");
	char path[PATH_MAX];
	int told = attribute(dev, ATTR_MPS);
	if (told >= 0)
		return told > 0;
	snprintf(path, sizeof path, "%s/control", dir && *dir ? dir : "/tmp/nvidia-mps");
	return access(path, F_OK) == 0;
}

/* Why this GPU cannot serve us; "" when it can. */
static void judge(struct gpu *g)
{
	char *w = g->why, mode[sizeof g->compute_mode];
	memcpy(mode, g->compute_mode, sizeof mode);
	if (g->capability < OLDEST_GPU)
		snprintf(w, GPU_WHY, "compute capability %d.%d; 8.0 is the oldest that is supported",
			 g->capability / 10, g->capability % 10);
	else if (g->cuda < OLDEST_DRIVER)
		snprintf(w, GPU_WHY, "the driver is for CUDA %d.%d; 12.4 is needed", g->cuda / 1000,
			 g->cuda % 1000 / 10);
	else if (strcmp(g->compute_mode, "prohibited") == 0)
		snprintf(w, GPU_WHY, "its compute mode is prohibited: nobody may use it");
	else if (strncmp(g->compute_mode, "exclusive", 9) == 0)
		snprintf(w, GPU_WHY, "its compute mode is %s: one process at a time, and checker and worker "
			 "are two", mode);
	else if (g->mps == 1)
		snprintf(w, GPU_WHY, "MPS serves it: one process's fault would end all the others");
	else if (g->vmm_export != 1)
		snprintf(w, GPU_WHY, "its driver cannot hand memory to another process (VMM export)");
	g->usable = !*w;
}

/* With a context: which clusters fit, and whether NVML shows processes by pids that we know. */
static void in_context(CUdevice dev, nvmlDevice d, struct gpu *g)
{
	CUcontext ctx = NULL;
	int pid, sees = 0;
	CUresult r = cu.PrimaryCtxRetain(&ctx, dev);
	if (r == CUDA_OK)
		r = cu.CtxSetCurrent(ctx);
	if (r != CUDA_OK) {
		snprintf(g->why, GPU_WHY, "it gives no context: %s", cuda_error(r));
		g->usable = 0;
		return;
	}
	facts_cuda_clusters(&g->facts);
	if (!d)
		return;
	g->others = foreign(d, 1, &pid, &sees);
	g->sees = sees;
}

static int describe(int index, int version, int have_nvml, struct gpu *g, struct err *e)
{
	CUdevice dev;
	size_t memory = 0;
	memset(g, 0, sizeof *g);
	CUresult r = cu.DeviceGet(&dev, index);
	if (r != CUDA_OK)
		return cuda_fail(e, "cuDeviceGet", r);
	if (facts_cuda(dev, &g->facts, e))
		return -1;
	g->index = index;
	nvmlDevice d = find(dev, have_nvml, g);
	g->capability = attribute(dev, ATTR_MAJOR) * 10 + attribute(dev, ATTR_MINOR);
	/* From 9.0 on the features of the very architecture (wgmma...) need the suffix. */
	snprintf(g->arch, sizeof g->arch, "sm_%d%s", g->capability, g->capability >= 90 ? "a" : "");
	cu.DeviceTotalMem(&memory, dev);
	g->memory_bytes = (int64_t)memory;
	g->cuda = version;
	g->ecc = g->persistence = g->sees = g->others = -1;
	if (d)
		ask_nvml(d, g);
	if (g->mig && !strstr(g->facts.slug, "-mig") && strlen(g->facts.slug) < 60)
		strcat(g->facts.slug, "-mig");
	if (have_nvml && NVML(DriverVersion, g->driver_version, sizeof g->driver_version) == NVML_OK)
		g->driver = (int)strtol(g->driver_version, NULL, 10);
	g->mps = mps_here(dev);
	g->vmm_export = attribute(dev, ATTR_VMM) == 1 && attribute(dev, ATTR_VMM_FD) == 1;
	int mode = attribute(dev, ATTR_MODE), told;
	if (d && NVML(ComputeMode, d, &told) == NVML_OK)
		mode = told;
	snprintf(g->compute_mode, sizeof g->compute_mode, "%s", mode_name(mode));
	judge(g);
	if (g->usable)
		in_context(dev, d, g);
	return 0;
}

/* --- the two reports --- */

static int open_driver(int *n, int *version, struct err *e)
{
	/* Not the caller's: an index means the same as in nvidia-smi, and nothing is left behind. */
	setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1);
	setenv("CUDA_CACHE_DISABLE", "1", 1);
	if (cuda_open(e))
		return -1;
	CUresult r = cu.Init(0);
	if (r == CUDA_NO_DEVICE)
		return err_set(e, EX_NOENV, "the CUDA driver sees no GPU");
	if (r != CUDA_OK)
		return err_set(e, EX_NOENV, "the CUDA driver does not start: %s", cuda_error(r));
	cu.DriverGetVersion(version);
	if (cu.DeviceGetCount(n) != CUDA_OK || *n < 1)
		return err_set(e, EX_NOENV, "the CUDA driver sees no GPU");
	if (*n > GPU_MAX)
		*n = GPU_MAX;
	return 0;
}

static int print(struct jsonw *w)
{
	buf_addc(&w->out, '\n');
	int bad = fwrite(buf_str(&w->out), 1, w->out.len, stdout) != w->out.len || fflush(stdout);
	jw_free(w);
	return bad ? EX_SYS : EX_DONE;
}

static int devices(void)
{
	static struct gpu g[GPU_MAX];
	struct jsonw w = {0};
	struct err e = {0};
	int n = 0, m = 0, version = 0;
	int bad = open_driver(&n, &version, &e);
	int have_nvml = bad ? 0 : nvml_open(NULL) == 0;
	/* One that cannot be described leaves the others be. */
	for (int i = 0; i < n && !bad; i++)
		m += describe(i, version, have_nvml, &g[m], &e) == 0;
	jw_obj(&w, NULL);
	jw_str(&w, "schema", "touchstone/devices/1");
	e.text[GPU_WHY - 1] = '\0';
	jw_str(&w, "why", e.text);
	jw_arr(&w, "gpus");
	for (int i = 0; i < m; i++)
		gpu_write(&g[i], &w, NULL);
	jw_end(&w);
	jw_end(&w);
	return print(&w);
}

static int state(const char *uuid)
{
	static struct nvml_process p[PROCESSES];
	struct gpu_state s = {0};
	int sees = 0;
	struct jsonw w = {0};
	struct nvml_violation v;
	struct err e;
	nvmlDevice d;
	unsigned u = 0;
	unsigned long long mask = 0;
	if (nvml_open(&e))
		die_err(&e);
	int rc = NVML(HandleByUUID, uuid, &d);
	if (rc != NVML_OK)
		die(EX_NOENV, "NVML knows no GPU '%.60s' (error %d)", uuid, rc);
	s.temperature_c = NVML(Temperature, d, 0, &u) == NVML_OK ? (int)u : 0;
	s.power_w = NVML(PowerUsage, d, &u) == NVML_OK ? (int)(u / 1000) : 0;
	s.sm_mhz = NVML(Clock, d, NVML_CLOCK_SM, &u) == NVML_OK ? (int)u : 0;
	s.mem_mhz = NVML(Clock, d, NVML_CLOCK_MEM, &u) == NVML_OK ? (int)u : 0;
	if (NVML(ThrottleReasons, d, &mask) == NVML_OK)
		s.throttle_reasons = mask & ((1ull << 53) - 1);
	if (NVML(Violation, d, NVML_POLICY_POWER, &v) == NVML_OK)
		s.power_violation_ns = v.violation_ns & ((1ull << 53) - 1);
	if (NVML(Violation, d, NVML_POLICY_THERMAL, &v) == NVML_OK)
		s.thermal_violation_ns = v.violation_ns & ((1ull << 53) - 1);
	s.foreign = foreign(d, 0, &s.foreign_pid, &sees);
	s.graphics = processes(nvml.GraphicsProcesses, d, p);
	gpu_state_write(&s, &w, NULL);
	return print(&w);
}

int main(int argc, char **argv)
{
	prog_name("probe");
	if (argc == 2 && strcmp(argv[1], "-h") == 0) {
		fputs(HELP, stdout);
		return fflush(stdout) ? EX_SYS : EX_DONE;
	}
	if (argc == 2 && strcmp(argv[1], "devices") == 0)
		return devices();
	if (argc == 3 && strcmp(argv[1], "state") == 0)
		return state(argv[2]);
	fputs(HELP, stderr);
	return EX_BADUSE;
}
