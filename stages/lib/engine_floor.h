/*
 * engine_floor.h - how fast could an engine be on this GPU at best?
 *
 * Pure arithmetic, of the model's dimensions and two ceilings; no load, launches, barriers or sampling are counted:
 *   prefill  the longer of: products of all prompts (layers, causal attention, the head for one row of each sequence); weights
 *            read once
 *   step     the longer of: the products of a token of each sequence; all layers and the head read once and the keys and values
 *            of every sequence at its length. steps - 1 of them, the first ids come with the prefill
 *
 * Ceilings are those of `make calibrate` where they were measured: the best of the bandwidths, the tensor cores' bfloat16. Else
 * the data sheet's of an H200 (4.8 TB/s, 790 TFLOP/s); of other GPUs none are known, nor of a processor.
 *
 * What lies below the floor by more than ENGINE_FLOOR_SLACK was measured wrong or is no such engine. That is said only of
 * models whose weights are much larger than the L2, where they cannot stay.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_ENGINE_FLOOR_H
#define TS_ENGINE_FLOOR_H

#include "gpu.h"
#include "qwen3.h"

#define ENGINE_FLOOR_SLACK 1.05

struct engine_ceilings {
	double bytes_s, flops_s; /* per second; 0: none known */
	const char *from;        /* "measured", "data sheet", "none" */
};

struct engine_floor {
	double prefill_s, step_s, total_s; /* of a batch; step_s is their mean, 0 for a single step */
	int binds;               /* 1: the model does not fit the caches, so nothing honest is faster */
};

/* NULL: a processor. */
struct engine_ceilings engine_ceilings_of(const struct gpu *g);
/* All zero without ceilings. `l2`: bytes. */
struct engine_floor engine_floor_of(const struct qwen3_config *c, const struct engine_ceilings *k, int64_t l2, int batch,
				    int prompt, int steps);

#endif
