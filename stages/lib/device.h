/*
 * device.h - the names of devices, and which one this machine can offer.
 *
 * "sim" is synthetic and always there; "emu" needs a host compiler for CUDA C (g++). Further
 * names belong to GPUs (a later version).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_DEVICE_H
#define TS_DEVICE_H

#include "err.h"
#include "spec.h"

/* The best device that works here. */
const char *device_default(void);

/* EX_BADUSE for an unknown name, EX_NOENV for one that this machine lacks. */
int device_check(const char *name, struct err *e);

/* What the figures of a device are worth, for banners and tables: "" for a real GPU. */
const char *device_note(const char *name);

/* Can the device run problems like this one? EX_NOENV with the reason when it cannot. */
int device_takes(const char *name, const struct spec *s, struct err *e);

/* GPUs that answer the driver (cuInit), found at run time; 0 where there is no driver. This version
 * only says so: kernels run on them with device cuda, which is not in it. */
int device_gpus(void);

#endif
