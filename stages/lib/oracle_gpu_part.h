/*
 * oracle_gpu_part.h - inside of oracle_gpu: oracle_gpu.c (inputs, sets, preparation), oracle_gpu_open.c
 * (opening, regimes) and oracle_gpu_verify.c.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_ORACLE_GPU_PART_H
#define TS_ORACLE_GPU_PART_H

#include "oracle_gpu.h"

/* Content of one set in device memory: one allocation of inputs, reference and baseline outputs. */
struct oracle_gpu_set {
	CUdeviceptr at;
	int valid, has_ref, has_base;
	uint32_t set;
	enum fill_regime regime;
	struct check_reference about[SPEC_MAX_TENSORS];
};

/* What comes back from the GPU; pinned host memory. */
struct oracle_gpu_back {
	struct check_report report;
	struct check_reference about[SPEC_MAX_TENSORS];
	struct check_op op[SPEC_MAX_TENSORS * FILL_CHANGES]; /* goes the other way */
};

struct oracle_gpu {
	struct oracle_gpu_kit *kit;
	const struct spec *spec;
	struct axes axes;
	struct gpu_mem mem;
	uint8_t key[32];
	uint32_t regimes;
	int64_t ref_ns;
	int has_base, has_ref;           /* has_ref: ours to run; else a command's */
	struct oracle_gpu_side ref, base;
	uint64_t in_off[MEM_MAX], in_size;   /* inputs of a set, by buffer */
	int nslots;
	struct oracle_gpu_set ring[CHECKER_RING];
	CUdeviceptr scratch[2], device;  /* device: a struct oracle_gpu_back there */
	struct oracle_gpu_back *back;
	CUevent event[2];
	/* of this rep */
	int prepared;
	struct checker_prep prep;
	CUdeviceptr ref_at, base_at;     /* outputs to compare with */
	struct check_reference about[SPEC_MAX_TENSORS];
	struct check_memory view;
	uint8_t hash_key[32];
	uint64_t in_hash[4], hash[4];
};

int oracle_gpu_wait(struct oracle_gpu *o, struct err *e);
/* The report, of which `zero` says whether it starts anew. */
int oracle_gpu_zero(struct oracle_gpu *o, struct err *e);
int oracle_gpu_fetch(struct oracle_gpu *o, struct err *e);
uint64_t oracle_gpu_report(const struct oracle_gpu *o);

#endif
