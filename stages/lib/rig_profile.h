/*
 * rig_profile.h - what a contest on a GPU says about time: the profile that goes back to the proposer, and
 * the floor below which no figure is believed.
 *
 * The floor is what the device cannot beat, not what we measured it to reach: bytes at the highest of the
 * measured bandwidths, less what its cache can keep of the writes (they are paid for after the window), and
 * operations at the peak that its clock and its multiprocessors allow.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_RIG_PROFILE_H
#define TS_RIG_PROFILE_H

#include "contest.h"
#include "rig.h"

#define RIG_FLOOR 0.9 /* of the floor: below, the contest is invalid */

/* Seconds. 0: the spec has no cost, or nothing is known of the device. */
double rig_floor_s(const struct spec *s, const struct axes *a, const struct gpu *g);
/* Is the candidate's mean below RIG_FLOOR of it anywhere? Then `text` says where. */
int rig_floor_broken(const struct rig *r, const struct contest *t, char text[200]);
void rig_profile_write(const struct rig *r, const struct contest *t, struct jsonw *w, const char *key);

#endif
