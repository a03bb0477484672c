/*
 * engine_model.h - the checkpoint of an engine problem: made once, or the folder the user gave.
 *
 * Without a folder of the user's (run setting model_dir) the checkpoint of the spec's shape and seed is made by
 * make-checkpoint into BUILD/models/SHAPE-seedN, where BUILD is the folder above this program's; whoever comes at the same
 * time waits. A folder of that name is whole: it was renamed into place.
 *
 * Its hash is SHA-256 over "NAME\0HASH\n" of config.json and all *.safetensors and *.safetensors.index.json, by
 * name. Every stage compares it with what the run and the stage before it recorded: one trial, one model. Hashes of files
 * are remembered in BUILD/models (tool.h: by size, inode and times); nothing is written to a folder of the user's.
 *
 * The reference computes on the processor until engine_model_gpu was called.
 *
 *   engine_model_open [-> engine_model_gpu] -> ... m.model, engine_replay.h ... -> engine_model_close
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_ENGINE_MODEL_H
#define TS_ENGINE_MODEL_H

#include "err.h"
#include "hash.h"
#include "qwen3.h"

#include <limits.h>
#include <stdint.h>

struct qwen3_gpu;

struct engine_model {
	char dir[PATH_MAX]; /* absolute, no links in it */
	char sha[HASH_HEX];
	struct qwen3 model;
	struct qwen3_gpu *gpu; /* the reference computes there; NULL: on the processor */
	void (*gpu_close)(struct qwen3_gpu *); /* private */
};

/* `dir`: the user's folder, or NULL; then shape ("tiny") and seed. `expect`: the hash on record, or NULL. EX_BADINPUT: no
 * usable checkpoint, or another than `expect`; EX_NOENV: the shape "any" without a folder. On error nothing stays open. */
int engine_model_open(struct engine_model *m, const char *dir, const char *shape, uint64_t seed, const char *expect,
		      struct err *e);
void engine_model_close(struct engine_model *m);

/* From now on the reference of this model computes on a GPU: `gpu` is its UUID, NULL the first that CUDA_VISIBLE_DEVICES
 * shows. Once per process and model. EX_NOENV: no GPU, driver or library for it; EX_AGAIN: not enough of its memory. */
int engine_model_gpu(struct engine_model *m, const char *gpu, struct err *e);

#endif
