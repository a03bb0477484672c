/*
 * cuda_api.h - the CUDA driver, opened at run time.
 *
 * Programs built where no CUDA is installed run where it is: the prototypes we use are written out
 * here (driver API 12.4 and later), libcuda.so.1 is opened by cuda_open. Only worker, checker and
 * probe call that, and of an engine in CUDA the stages that replay it (qwen3_gpu.h); nobody links libcuda.
 *
 * cuda_open once per process, then cu.Init(0) and so on: the name without its prefix. The driver
 * stays loaded to the end: it does not like to be unloaded. EX_NOENV, with the reason, where there
 * is no driver or it is too old.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_CUDA_API_H
#define TS_CUDA_API_H

#include "err.h"

#include <stddef.h>
#include <stdint.h>

typedef int CUresult, CUdevice;
typedef uint64_t CUdeviceptr, CUmemHandle;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUgraphExec_st *CUgraphExec;

typedef struct {
	_Alignas(64) uint64_t opaque[16];
} CUtensorMap;

/* CUlaunchAttribute, CUlaunchConfig */
typedef struct {
	uint32_t id, pad;
	union {
		uint32_t u[16];
		uint64_t align;
	} value;
} CUlaunchAttr;
typedef struct {
	uint32_t grid[3], block[3], shared;
	CUstream stream;
	CUlaunchAttr *attrs;
	uint32_t nattrs;
} CUlaunch;

/* CUmemAllocationProp, CUmemAccessDesc */
typedef struct {
	int type, handle_types;
	struct {
		int type, id;
	} location;
	void *win32;
	struct {
		unsigned char compression, rdma;
		unsigned short usage;
		unsigned char reserved[4];
	} flags;
} CUmemProp;
typedef struct {
	struct {
		int type, id;
	} location;
	int flags;
} CUmemAccess;

/* CUgraphExecUpdateResultInfo */
typedef struct {
	int result;
	CUgraphNode error_node, error_from;
} CUgraphUpdate;

_Static_assert(sizeof(CUlaunchAttr) == 72 && sizeof(CUlaunch) == 56 && sizeof(CUmemProp) == 32 &&
		       sizeof(CUmemAccess) == 12 && sizeof(CUtensorMap) == 128,
	       "layout of the driver's structs");

enum {
	CUDA_OK = 0, CUDA_INVALID_VALUE = 1, CUDA_OUT_OF_MEMORY = 2, CUDA_NO_DEVICE = 100, CUDA_NOT_FOUND = 500,
	CUDA_NOT_READY = 600, CUDA_ILLEGAL_ADDRESS = 700,
};
enum { CU_LAUNCH_COOPERATIVE = 2, CU_LAUNCH_CLUSTER = 4, CU_LAUNCH_PDL = 6 }; /* launch attributes */
enum {
	CU_FUNC_MAX_THREADS = 0, CU_FUNC_SHARED = 1, CU_FUNC_LOCAL = 3, CU_FUNC_REGS = 4, CU_FUNC_MAX_DYNAMIC = 8,
	CU_FUNC_NON_PORTABLE_CLUSTER = 14,
};
enum { CU_MEM_PINNED = 1, CU_MEM_POSIX_FD = 1, CU_MEM_ON_DEVICE = 1, CU_MEM_READ = 1, CU_MEM_READ_WRITE = 3 };
enum { CU_EVENT_EXTERNAL = 1, CU_STREAM_NON_BLOCKING = 1, CU_CAPTURE_THREAD = 1, CU_LIMIT_PERSISTING_L2 = 6 };

/* Device attributes by number: see the driver's CUdevice_attribute. */
#define CUDA_CALLS(X) \
	X(Init, cuInit, (unsigned)) \
	X(DriverGetVersion, cuDriverGetVersion, (int *)) \
	X(GetErrorName, cuGetErrorName, (CUresult, const char **)) \
	X(DeviceGet, cuDeviceGet, (CUdevice *, int)) \
	X(DeviceGetCount, cuDeviceGetCount, (int *)) \
	X(DeviceGetName, cuDeviceGetName, (char *, int, CUdevice)) \
	X(DeviceGetUuid, cuDeviceGetUuid_v2, (uint8_t[16], CUdevice)) \
	X(DeviceGetAttribute, cuDeviceGetAttribute, (int *, int, CUdevice)) \
	X(DeviceTotalMem, cuDeviceTotalMem_v2, (size_t *, CUdevice)) \
	X(PrimaryCtxRetain, cuDevicePrimaryCtxRetain, (CUcontext *, CUdevice)) \
	X(CtxSetCurrent, cuCtxSetCurrent, (CUcontext)) \
	X(CtxSynchronize, cuCtxSynchronize, (void)) \
	X(CtxSetLimit, cuCtxSetLimit, (int, size_t)) \
	X(CtxResetPersistingL2Cache, cuCtxResetPersistingL2Cache, (void)) \
	X(ModuleLoadData, cuModuleLoadData, (CUmodule *, const void *)) \
	X(ModuleUnload, cuModuleUnload, (CUmodule)) \
	X(ModuleGetFunction, cuModuleGetFunction, (CUfunction *, CUmodule, const char *)) \
	X(ModuleGetGlobal, cuModuleGetGlobal_v2, (CUdeviceptr *, size_t *, CUmodule, const char *)) \
	X(FuncGetAttribute, cuFuncGetAttribute, (int *, int, CUfunction)) \
	X(FuncSetAttribute, cuFuncSetAttribute, (CUfunction, int, int)) \
	X(FuncGetParamInfo, cuFuncGetParamInfo, (CUfunction, size_t, size_t *, size_t *)) \
	X(MemAlloc, cuMemAlloc_v2, (CUdeviceptr *, size_t)) \
	X(MemFree, cuMemFree_v2, (CUdeviceptr)) \
	X(MemGetInfo, cuMemGetInfo_v2, (size_t *, size_t *)) \
	X(MemHostAlloc, cuMemHostAlloc, (void **, size_t, unsigned)) \
	X(MemFreeHost, cuMemFreeHost, (void *)) \
	X(MemcpyHtoD, cuMemcpyHtoD_v2, (CUdeviceptr, const void *, size_t)) \
	X(MemcpyDtoH, cuMemcpyDtoH_v2, (void *, CUdeviceptr, size_t)) \
	X(MemcpyDtoDAsync, cuMemcpyDtoDAsync_v2, (CUdeviceptr, CUdeviceptr, size_t, CUstream)) \
	X(MemcpyHtoDAsync, cuMemcpyHtoDAsync_v2, (CUdeviceptr, const void *, size_t, CUstream)) \
	X(MemcpyDtoHAsync, cuMemcpyDtoHAsync_v2, (void *, CUdeviceptr, size_t, CUstream)) \
	X(MemsetD8Async, cuMemsetD8Async, (CUdeviceptr, unsigned char, size_t, CUstream)) \
	X(MemsetD32Async, cuMemsetD32Async, (CUdeviceptr, unsigned, size_t, CUstream)) \
	X(MemAddressReserve, cuMemAddressReserve, (CUdeviceptr *, size_t, size_t, CUdeviceptr, unsigned long long)) \
	X(MemAddressFree, cuMemAddressFree, (CUdeviceptr, size_t)) \
	X(MemCreate, cuMemCreate, (CUmemHandle *, size_t, const CUmemProp *, unsigned long long)) \
	X(MemRelease, cuMemRelease, (CUmemHandle)) \
	X(MemMap, cuMemMap, (CUdeviceptr, size_t, size_t, CUmemHandle, unsigned long long)) \
	X(MemUnmap, cuMemUnmap, (CUdeviceptr, size_t)) \
	X(MemSetAccess, cuMemSetAccess, (CUdeviceptr, size_t, const CUmemAccess *, size_t)) \
	X(MemGetAllocationGranularity, cuMemGetAllocationGranularity, (size_t *, const CUmemProp *, int)) \
	X(MemExport, cuMemExportToShareableHandle, (void *, CUmemHandle, int, unsigned long long)) \
	X(MemImport, cuMemImportFromShareableHandle, (CUmemHandle *, void *, int)) \
	X(StreamCreate, cuStreamCreate, (CUstream *, unsigned)) \
	X(StreamSynchronize, cuStreamSynchronize, (CUstream)) \
	X(StreamBeginCapture, cuStreamBeginCapture_v2, (CUstream, int)) \
	X(StreamEndCapture, cuStreamEndCapture, (CUstream, CUgraph *)) \
	X(StreamGetCaptureInfo, cuStreamGetCaptureInfo_v2, (CUstream, int *, uint64_t *, CUgraph *, \
		const CUgraphNode **, size_t *)) \
	X(StreamUpdateCaptureDependencies, cuStreamUpdateCaptureDependencies, (CUstream, CUgraphNode *, size_t, \
		unsigned)) \
	X(GraphDestroy, cuGraphDestroy, (CUgraph)) \
	X(GraphInstantiate, cuGraphInstantiateWithFlags, (CUgraphExec *, CUgraph, unsigned long long)) \
	X(GraphExecUpdate, cuGraphExecUpdate_v2, (CUgraphExec, CUgraph, CUgraphUpdate *)) \
	X(GraphExecDestroy, cuGraphExecDestroy, (CUgraphExec)) \
	X(GraphLaunch, cuGraphLaunch, (CUgraphExec, CUstream)) \
	X(EventCreate, cuEventCreate, (CUevent *, unsigned)) \
	X(EventRecord, cuEventRecord, (CUevent, CUstream)) \
	X(EventRecordWithFlags, cuEventRecordWithFlags, (CUevent, CUstream, unsigned)) \
	X(EventQuery, cuEventQuery, (CUevent)) \
	X(EventSynchronize, cuEventSynchronize, (CUevent)) \
	X(EventElapsedTime, cuEventElapsedTime, (float *, CUevent, CUevent)) \
	X(LaunchKernelEx, cuLaunchKernelEx, (const CUlaunch *, CUfunction, void **, void **)) \
	X(OccupancyBlocks, cuOccupancyMaxActiveBlocksPerMultiprocessor, (int *, CUfunction, int, size_t)) \
	X(OccupancyClusters, cuOccupancyMaxActiveClusters, (int *, CUfunction, const CUlaunch *)) \
	X(TensorMapEncodeTiled, cuTensorMapEncodeTiled, (CUtensorMap *, int, uint32_t, void *, const uint64_t *, \
		const uint64_t *, const uint32_t *, const uint32_t *, int, int, int, int))

struct cuda_api {
#define X(name, symbol, args) CUresult (*name) args;
	CUDA_CALLS(X)
#undef X
};

extern struct cuda_api cu; /* valid after cuda_open */

int cuda_open(struct err *e);
/* Open, cuInit, the primary context of device 0 (CUDA_VISIBLE_DEVICES says which that is), current.
 * Eager module loading and no compile cache: sets the environment before the driver looks. */
int cuda_start(CUdevice *dev, struct err *e);
/* The same with lazy loading: for who times nothing and uses a library of thousands of kernels. */
int cuda_start_lazy(CUdevice *dev, struct err *e);
const char *cuda_error(CUresult r); /* "CUDA_ERROR_ILLEGAL_ADDRESS", never NULL */
/* err_set with the call's name and the driver's word for it; -1. */
int cuda_fail(struct err *e, const char *call, CUresult r);
/* Is r the fault of the code that ran (illegal address, trap, launch failure...), after which the
 * context is dead? */
int cuda_sticky(CUresult r);

#endif
