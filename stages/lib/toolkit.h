/*
 * toolkit.h - the CUDA toolkit of this machine, found at run time: NVRTC and its headers.
 *
 * Looked for, in this order: $CUDA_HOME and $CUDA_PATH, /usr/local/cuda, /usr/local/cuda-N.M (newest
 * first), /opt/cuda, the folders of the distribution. Toolkits 12.4 to 13.x. Nothing is opened or run:
 * the box alone loads the library, in its confinement.
 *
 * EX_NOENV, with the reason in one line, where there is none.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_TOOLKIT_H
#define TS_TOOLKIT_H

#include "err.h"

struct toolkit {
	char lib[1024];     /* libnvrtc.so.N, links resolved */
	char root[1024];    /* what the compiler may see beside /usr: its whole folder */
	char include[1024]; /* has cuda_runtime.h; "" none */
	char cccl[1040];    /* where a toolkit keeps cub, cuda and thrust apart; "" the same */
	int major, minor;   /* by its headers; 0 unknown until the library is asked */
	char id[3 * 64 + 1024]; /* which library this is: path, size, time; part of every cache key */
};

extern const char *const TOOLKIT_LIB_DIRS[]; /* below a root, NULL at the end */

int toolkit_find(struct toolkit *t, struct err *e);

#endif
