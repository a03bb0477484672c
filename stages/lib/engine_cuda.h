/*
 * engine_cuda.h - where engines in CUDA find the toolkit's libraries.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_ENGINE_CUDA_H
#define TS_ENGINE_CUDA_H

#include "err.h"

#include <limits.h>

/* The folder of libcublas, links resolved, for LD_LIBRARY_PATH. EX_NOENV. */
int engine_cuda_libraries(char out[PATH_MAX], struct err *e);

#endif
