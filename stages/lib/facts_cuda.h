/*
 * facts_cuda.h - the facts of a GPU, as its driver tells them.
 *
 * For the processes that have the driver open (probe, worker, checker); everybody else reads them
 * from device.json (gpu.h). The same function everywhere, so the figures agree.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_FACTS_CUDA_H
#define TS_FACTS_CUDA_H

#include "cuda_api.h"
#include "facts.h"

/* All facts but `clusters`. No context is needed. EX_NOENV when the driver refuses one. */
int facts_cuda(CUdevice dev, struct facts *f, struct err *e);
/* f->clusters, with a context of the device current. What the driver does not answer stays 0. */
void facts_cuda_clusters(struct facts *f);

/* "NVIDIA H200" -> "nvidia-h200": what may be the name of a folder, never empty. */
void facts_slug(const char *name, char out[65]);

#endif
