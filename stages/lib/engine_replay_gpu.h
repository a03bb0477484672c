/*
 * engine_replay_gpu.h - engine_replay.h where the model's reference computes on a GPU (m->gpu).
 *
 * The same three calls with the same meaning, a batch at a time.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_ENGINE_REPLAY_GPU_H
#define TS_ENGINE_REPLAY_GPU_H

#include "engine_replay.h"
#include "qwen3_ref.h"

int engine_gpu_replay(const struct engine_model *m, const struct engine_asked *a, int n, struct engine_regrets *r, struct err *e);
/* Fills a[i].out with greedy answers. */
int engine_gpu_answer(const struct engine_model *m, enum qwen3_policy p, enum qwen3_fault f, const struct engine_asked *a, int n,
		      struct err *e);
/* Regrets of right answers under a policy; a[i].out stays as it is. */
int engine_gpu_honest(const struct engine_model *m, enum qwen3_policy p, const struct engine_asked *a, int n,
		      struct engine_regrets *r, struct err *e);
int engine_gpu_best(const struct engine_model *m, const struct engine_asked *a, int sequence, int step, int32_t *id,
		    struct err *e);

#endif
