/*
 * nvml_api.h - NVIDIA's management library, opened at run time.
 *
 * Like cuda_api.h: the prototypes we use are written out, libnvidia-ml.so.1 is opened by nvml_open,
 * nobody links it. Only probe calls it. A call that this driver's library lacks is NULL in the table:
 * call through NVML(), which then answers NVML_NOT_FOUND.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_NVML_API_H
#define TS_NVML_API_H

#include "err.h"

#include <stdint.h>

typedef struct nvmlDevice_st *nvmlDevice;

/* nvmlProcessInfo_t of _v3 (and _v2). */
struct nvml_process {
	unsigned pid;
	unsigned long long bytes;
	unsigned gpu_instance, compute_instance;
};
struct nvml_violation { /* nvmlViolationTime_t */
	unsigned long long reference_us, violation_ns;
};

_Static_assert(sizeof(struct nvml_process) == 24 && sizeof(struct nvml_violation) == 16,
	       "layout of the library's structs");

enum { NVML_OK = 0, NVML_INSUFFICIENT_SIZE = 7, NVML_NOT_FOUND = 13 };
enum { NVML_CLOCK_SM = 1, NVML_CLOCK_MEM = 2 };
enum { NVML_POLICY_POWER = 0, NVML_POLICY_THERMAL = 1 };
enum { NVML_DEFAULT = 0, NVML_EXCLUSIVE_THREAD = 1, NVML_PROHIBITED = 2, NVML_EXCLUSIVE_PROCESS = 3 };

#define NVML_CALLS(X) \
	X(Init, nvmlInit_v2, (void)) \
	X(DriverVersion, nvmlSystemGetDriverVersion, (char *, unsigned)) \
	X(HandleByUUID, nvmlDeviceGetHandleByUUID, (const char *, nvmlDevice *)) \
	X(Temperature, nvmlDeviceGetTemperature, (nvmlDevice, int, unsigned *)) \
	X(PowerUsage, nvmlDeviceGetPowerUsage, (nvmlDevice, unsigned *)) \
	X(PowerLimit, nvmlDeviceGetEnforcedPowerLimit, (nvmlDevice, unsigned *)) \
	X(Clock, nvmlDeviceGetClockInfo, (nvmlDevice, int, unsigned *)) \
	X(MaxClock, nvmlDeviceGetMaxClockInfo, (nvmlDevice, int, unsigned *)) \
	X(ThrottleReasons, nvmlDeviceGetCurrentClocksThrottleReasons, (nvmlDevice, unsigned long long *)) \
	X(Violation, nvmlDeviceGetViolationStatus, (nvmlDevice, int, struct nvml_violation *)) \
	X(EccMode, nvmlDeviceGetEccMode, (nvmlDevice, int *, int *)) \
	X(MigMode, nvmlDeviceGetMigMode, (nvmlDevice, unsigned *, unsigned *)) \
	X(Persistence, nvmlDeviceGetPersistenceMode, (nvmlDevice, int *)) \
	X(ComputeMode, nvmlDeviceGetComputeMode, (nvmlDevice, int *)) \
	X(ComputeProcesses, nvmlDeviceGetComputeRunningProcesses_v3, \
		(nvmlDevice, unsigned *, struct nvml_process *)) \
	X(GraphicsProcesses, nvmlDeviceGetGraphicsRunningProcesses_v3, \
		(nvmlDevice, unsigned *, struct nvml_process *))

struct nvml_api {
#define X(name, symbol, args) int (*name) args;
	NVML_CALLS(X)
#undef X
};

extern struct nvml_api nvml; /* valid after nvml_open */

#define NVML(name, ...) (nvml.name ? nvml.name(__VA_ARGS__) : NVML_NOT_FOUND)

/* Open and initialise. EX_NOENV with a one-line reason. */
int nvml_open(struct err *e);

#endif
