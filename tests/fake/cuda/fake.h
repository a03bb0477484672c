/*
 * fake.h - inside of the fake CUDA driver of the tests. See README.md.
 *
 * One device thread carries out everything that is queued, in order; the callers' threads only
 * queue, capture and wait. What a kernel does wrong is caught there and makes the driver refuse all
 * that follows, as the real one does.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FAKE_CUDA_H
#define FAKE_CUDA_H

#include "../../../stages/emu/include/emu_abi.h" /* before any header that makes `noreturn` a macro */

#include "../../../stages/lib/cuda_api.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum {
	FAKE_GPUS = 2, FAKE_NAME = 256, FAKE_PARAMS = 128, FAKE_FUNCS = 64, FAKE_OBJECTS = 64,
	FAKE_TICK_NS = 32, FAKE_EVENT_NS = 1312, FAKE_KERNEL_NS = 1408, FAKE_SHARED_MOST = 232448,
	FAKE_SHARED_SM = 233472,
};

/* Codes that cuda_api.h has no name for. */
enum {
	FAKE_NOT_INITIALIZED = 3, FAKE_INVALID_DEVICE = 101, FAKE_INVALID_IMAGE = 200, FAKE_INVALID_CONTEXT = 201,
	FAKE_NO_BINARY = 209, FAKE_INVALID_HANDLE = 400, FAKE_LAUNCH_FAILED = 719, FAKE_COOPERATIVE_TOO_LARGE = 720,
	FAKE_NOT_SUPPORTED = 801, FAKE_CAPTURE_UNSUPPORTED = 900, FAKE_CAPTURE_INVALIDATED = 901,
	FAKE_CAPTURE_UNMATCHED = 903, FAKE_CAPTURED_EVENT = 907, FAKE_UPDATE_FAILED = 910, FAKE_INVALID_CLUSTER = 912,
};

struct fake_param {
	uint32_t offset, size;
};

struct CUfunc_st {
	char name[FAKE_NAME];
	struct CUmod_st *module;
	const struct emu_entry *host; /* NULL: nobody wrote one for this name */
	int nparams;
	struct fake_param param[FAKE_PARAMS];
	int regs, shared, local, max_threads, max_dynamic, non_portable;
	uint32_t cluster[3];          /* compiled in; 0 none */
};

struct fake_object {                  /* a variable of a module */
	char name[FAKE_NAME];
	CUdeviceptr at;
	size_t bytes;
};

struct CUmod_st {
	int dead;                     /* unloaded: kernels of it that are still in graphs must not run */
	int nfuncs, nobjects;
	struct CUfunc_st *func;
	struct fake_object *object;
	CUdeviceptr section[4];       /* storage of the data sections, ours */
};

struct CUevent_st {
	int timing, recorded, captured;
	volatile int done;
	uint64_t ns, seq;
};

enum fake_kind { FAKE_KERNEL, FAKE_COPY, FAKE_SET8, FAKE_SET32, FAKE_EVENT };

struct fake_op {
	enum fake_kind kind;
	/* kernel: args points into one allocation that belongs to the op */
	struct CUfunc_st *func;
	uint32_t grid[3], block[3], shared, cluster[3];
	int cooperative;
	void **args;
	/* copy, set, event */
	uint64_t to, from;
	size_t n;
	unsigned value;
	void *staged;                 /* copy: the source's content when the call was made; ours */
	CUevent event;
};

struct fake_ops {
	struct fake_op *op;
	size_t n, room;
};

struct CUgraph_st {
	struct fake_ops ops;
};
struct CUgraphExec_st {
	struct fake_ops ops;
};
struct CUstream_st {
	uint64_t seq;                 /* last that was queued here */
	struct CUgraph_st *capture;   /* NULL: not capturing */
	int invalid;                  /* capture: something forbidden was called */
};
struct CUctx_st {
	int device, retained;
};

/* One prototype for each call, so that the compiler compares them with the definitions. */
#define X(name, symbol, args) __attribute__((visibility("default"))) CUresult symbol args;
CUDA_CALLS(X)
#undef X

/* api.c */
const char *fake_setting(const char *name);   /* environment, else fake.conf beside this library */
long fake_number(const char *name, long otherwise);
int fake_gpus(void);
size_t fake_granule(void);                    /* of virtual memory; settled by cuInit */
int fake_ready(void);                         /* 0, or the code that a call has to return */
int fake_ready_uncaptured(void);              /* the same, for calls that a capture forbids */
int fake_capture_begin(int delta);            /* of this thread; returns how many are open */
void fake_capture_spoil(void);
int fake_driver_version(void);
void fake_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* queue.c */
int fake_sticky(void);
int fake_thread_start(void);
uint64_t fake_submit(struct fake_ops *ops);   /* takes over the ops' memory */
int fake_wait(uint64_t seq);                  /* 0 or the sticky error */
int fake_drain(void);
uint64_t fake_clock(void);                    /* of the device thread, ns */
void fake_clock_add(uint64_t ns);
void fake_fault(int code) __attribute__((__noreturn__)); /* in the device thread, from a kernel */
int fake_enqueue(CUstream s, const struct fake_op *op); /* or capture; takes over the op's memory */

/* graph.c */
int fake_ops_add(struct fake_ops *l, const struct fake_op *op);
int fake_op_copy(struct fake_op *to, const struct fake_op *from);
void fake_op_free(struct fake_op *op);
void fake_ops_free(struct fake_ops *l);

/* memory.c */
CUdeviceptr fake_alloc(size_t bytes);
void fake_free(CUdeviceptr at);
CUdeviceptr fake_module_alloc(size_t bytes);  /* for the data of a module */
void fake_module_free(CUdeviceptr at);

/* elf.c: what a cubin contains */
int fake_elf_read(struct CUmod_st *m, const uint8_t *data, size_t len);

/* run.c, in the device thread */
void fake_run_kernel(const struct fake_op *op);

/* registry.c: host builds of kernels */
const struct emu_entry *fake_host_find(const char *kernel);
void *fake_host_object(const char *name, size_t *bytes);

#endif
