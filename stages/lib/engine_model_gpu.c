/*
 * engine_model_gpu.c - the part of engine_model.h that opens a GPU's driver: only programs that compute there hold it.
 *
 * SPDX-License-Identifier: MIT
 */
#include "engine_model.h"
#include "qwen3_gpu.h"

#include <stdlib.h>

int engine_model_gpu(struct engine_model *m, const char *gpu, struct err *e)
{
	if (m->gpu)
		return 0;
	if (gpu)
		setenv("CUDA_VISIBLE_DEVICES", gpu, 1); /* before the driver looks */
	m->gpu_close = qwen3_gpu_close;
	return qwen3_gpu_open(&m->gpu, &m->model, e);
}
