/*
 * rawfile.h - the raw samples of bench and confirm: integer ticks, never rounded, never dropped.
 *
 * Format TSRAW1, little-endian, no padding. Header, 32 bytes:
 *
 *    0  8  magic "TSRAW1\n\0"
 *    8  4  bytes of this header (32)
 *   12  4  bytes of a record (32)
 *   16  8  records that follow, to the end of the file
 *   24  8  ticks per second (1000000000 for a nanosecond clock)
 *
 * Record, 32 bytes, in the order of the reps:
 *
 *    0  8  start, ticks since the first sample of the file
 *    8  8  stop
 *   16  2  session, counted over the file from 0
 *   18  2  workload, as listed in the JSON
 *   20  2  block, counted over its session and workload
 *   22  2  slot: place in the block, 4 to a quad
 *   24  4  input set
 *   28  1  arm:   0 champion, 1 candidate, 2 baseline
 *   29  1  phase: 0 warm-up, 1 solo, 2 measure, 3 anchor, 4 drain, 5 sustained (4 and 5: confirmation on a
 *             GPU. 4: the window ends with a read of more than L2, so that what was written is paid for;
 *             5: stop - start is the sum of the windows of one burst)
 *   30  1  drop:  0 counted, else why its pair is not (no reason exists on emu and sim)
 *   31  1  check: 1 output verified in full, 0 not verified (sim), 2 wrong
 *
 * Only phase 2 decides. Life: raw_begin, raw_add ..., raw_bytes, raw_free. Times never touch
 * floating point.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_RAWFILE_H
#define TS_RAWFILE_H

#include "buf.h"
#include "err.h"

#include <stdint.h>

#define RAW_HEADER 32
#define RAW_RECORD 32

enum raw_arm { RAW_CHAMPION = 0, RAW_CANDIDATE = 1, RAW_BASELINE = 2, RAW_ARMS = 3 };
enum raw_phase { RAW_WARM = 0, RAW_SOLO = 1, RAW_MEASURE = 2, RAW_ANCHOR = 3,
		 RAW_DRAIN = 4, RAW_SUSTAINED = 5 };
enum raw_check { RAW_UNCHECKED = 0, RAW_RIGHT = 1, RAW_WRONG = 2 };

struct raw_rep {
	uint64_t start, stop;
	uint16_t session, workload, block, slot;
	uint32_t set;
	uint8_t arm, phase, drop, check;
};

struct raw {
	struct buf bytes; /* header and records */
	uint64_t count;
	uint64_t ticks_per_s;
};

void raw_begin(struct raw *r, uint64_t ticks_per_s);
void raw_add(struct raw *r, const struct raw_rep *rep);
void raw_set_check(struct raw *r, uint64_t index, enum raw_check check); /* of a record that is there: learned later */
const void *raw_bytes(struct raw *r, size_t *len); /* with the count in the header */
void raw_free(struct raw *r);

/* Read: checks magic, sizes and that the length is exact. `what` names the file in errors. */
int raw_parse(const void *data, size_t len, const char *what, struct raw *out, struct err *e);
void raw_get(const struct raw *r, uint64_t index, struct raw_rep *out);

#endif
