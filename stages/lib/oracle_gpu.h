/*
 * oracle_gpu.h - oracle.h on a GPU: one workload inside the checker.
 *
 * Same calls, same meaning. All data stays on the GPU: inputs are drawn there from keys, the reference
 * and the baseline run there, in the checker's own context (what a worker does to its context does not
 * touch ours), outputs are compared there. Only figures come back. Outputs that are judged as a set
 * (top-k, sorts, ...) and references by a command go over the host, which costs about a second for
 * every few hundred MiB.
 *
 * Sets: up to CHECKER_RING are kept in device memory, inputs as drawn and, once an unperturbed rep
 * asked, reference and baseline outputs. A perturbed rep copies its set's inputs, changes a few
 * elements and runs the reference anew.
 *
 * The kit is of the process: driver, kernels, images. Zero it, set run and dir; oracle_gpu_kit_free.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_ORACLE_GPU_H
#define TS_ORACLE_GPU_H

#include "checker_call.h"
#include "gpu_check.h"
#include "gpu_memory.h"
#include "gpu_run.h"
#include "image.h"
#include "oracle.h"

struct oracle_gpu_image {
	struct image image;
	int has, loaded[PLAN_MAX_CONFIGS];
	struct gpu_module module[PLAN_MAX_CONFIGS];
};

struct oracle_gpu_kit {
	const struct run *run;
	const char *dir;
	int started;
	CUdevice dev;
	struct facts facts;
	char arch[16];
	uint64_t granule;
	CUstream stream;
	CUmodule module;
	CUfunction kernel[CHECK_KERNELS];
	struct check_runner runner;
	struct oracle_gpu_image ref, base;
};

struct oracle_gpu; /* opaque */

void oracle_gpu_kit_free(struct oracle_gpu_kit *k);
/* others[n]: layouts of workloads that are open; addresses are chosen apart from them, so that one
 * worker can map all. */
int oracle_gpu_open(struct oracle_gpu **out, struct oracle_gpu_kit *kit, const struct spec *spec,
		    const struct axes *axes, const struct checker_open *q, const uint8_t key[32],
		    const struct mem_layout *const *others, int n, struct err *e);
int oracle_gpu_prepare(struct oracle_gpu *o, const struct checker_prep *p,
		       double scalars[CHECKER_SCALARS], struct err *e);
int oracle_gpu_verify(struct oracle_gpu *o, struct compare_result *r, struct err *e);
int oracle_gpu_again(struct oracle_gpu *o, int *same, struct err *e);
void oracle_gpu_close(struct oracle_gpu *o);

const struct gpu_mem *oracle_gpu_memory(const struct oracle_gpu *o);
uint32_t oracle_gpu_regimes(const struct oracle_gpu *o);
int64_t oracle_gpu_reference_ns(const struct oracle_gpu *o);

/* oracle_gpu_kit.c */
int oracle_gpu_start(struct oracle_gpu_kit *k, struct err *e);
/* Read and compile once; the module that serves these axes, loaded. */
int oracle_gpu_image_for(struct oracle_gpu_kit *k, struct oracle_gpu_image *m, const struct spec *s,
			 const struct axes *a, const char *source, const char *plan, struct gpu_module **out,
			 struct err *e);

/* oracle_gpu_side.c: reference or baseline at one workload. */
struct oracle_gpu_side {
	int open;
	struct launches launches;
	struct gpu_prepared *prepared;
	CUdeviceptr out, ws;
	uint64_t off[SPEC_MAX_TENSORS], bytes[SPEC_MAX_TENSORS]; /* outputs in `out` */
	uint64_t ws_off[PLAN_MAX_WORKSPACES];
	uint64_t size;                                 /* of `out` */
};
/* Places of outputs; all that a reference by a command needs. */
int oracle_gpu_side_plan(struct oracle_gpu_side *d, const struct spec *s, const struct axes *a,
			 int reference, struct err *e);
int oracle_gpu_side_open(struct oracle_gpu_side *d, struct oracle_gpu_kit *k, const struct gpu_mem *m,
			 const struct plan *p, struct gpu_module *module, const struct spec *s,
			 const struct axes *a, int reference, struct err *e);
int oracle_gpu_side_run(struct oracle_gpu_side *d, struct oracle_gpu_kit *k, const struct spec *s,
			const double *scalars, struct err *e);
void oracle_gpu_side_close(struct oracle_gpu_side *d);

#endif
