/*
 * gpu_source.h - device code of ours (stages/gpu) to a cubin, by the box.
 *
 * Compiled without contraction: the host's build of the same text gives the same bits. The box's cache holds what
 * was compiled before.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_GPU_SOURCE_H
#define TS_GPU_SOURCE_H

#include "buf.h"
#include "cuda_api.h"
#include "err.h"

/* "sm_90a" of a device. */
int gpu_source_arch(CUdevice dev, char arch[16], struct err *e);

/* The files `name` (n of them, in stages/gpu near our own program), one behind the other. EX_NOENV: no such file, no
 * compiler; EX_HARNESS: does not compile. */
int gpu_source_build(const char *const *name, int n, const char *arch, struct buf *cubin, struct err *e);

#endif
