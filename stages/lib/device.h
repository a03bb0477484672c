/*
 * device.h - the names of devices, and which one this machine can offer.
 *
 * "sim" is synthetic and always there; "emu" needs a host compiler for CUDA C (g++); every other name
 * is the slug of a GPU's model ("nvidia-h200"), and "cuda" asks for the ablest GPU here. What runs,
 * trials and champions hold is the slug: device_resolve is the one place where "cuda" is understood.
 *
 * GPUs are found by the probe (gpu.h). To be used a GPU must be usable and the toolkit's NVRTC must
 * be there to compile for it.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_DEVICE_H
#define TS_DEVICE_H

#include "err.h"
#include "spec.h"
#include "trial.h"

enum { DEVICE_WHY = 320 };

/* "emu", "sim", "cuda", a slug, or NULL: the best that works here, a GPU before emu before sim. The
 * name to record, and in one line which device that is and why. EX_BADUSE for what is no name,
 * EX_NOENV for what this machine lacks. */
int device_resolve(const char *given, char name[TRIAL_NAME], char why[DEVICE_WHY], struct err *e);

/* The same of NULL, for reports. */
const char *device_default(void);

/* EX_BADUSE for an impossible name, EX_NOENV for one that this machine lacks. */
int device_check(const char *name, struct err *e);

/* What the figures of a device are worth, for banners and tables: "" for a real GPU. */
const char *device_note(const char *name);

/* Can the device run problems like this one? EX_NOENV with the reason when it cannot. */
int device_takes(const char *name, const struct spec *s, struct err *e);

#endif
