/*
 * checker_wire.h - what a stage and its checker say to each other. Private to checker_call.c
 * and stages/roles/checker.c.
 *
 * A SOCK_SEQPACKET pair; the checker's end is descriptor CHECKER_FD. One request, one reply,
 * each one packet of fixed size; the reply to OPEN carries descriptors (SCM_RIGHTS): the inputs
 * memfd and the rw memfd, or on a GPU one shareable handle per buffer of the layout. Both sides are one build on one machine, so structs travel as
 * they are. A failed request answers code != 0 and a text; the checker stays usable.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_CHECKER_WIRE_H
#define TS_CHECKER_WIRE_H

#include "checker_call.h"

enum { CHECKER_FD = 3, CHECKER_MAGIC = 0x54534331 };

enum checker_op {
	CHECKER_OP_DRAW = 1,
	CHECKER_OP_OPEN,
	CHECKER_OP_CLOSE,
	CHECKER_OP_PREPARE,
	CHECKER_OP_VERIFY,
	CHECKER_OP_AGAIN,
	CHECKER_OP_MAC,
	CHECKER_OP_SUBKEY,
	CHECKER_OP_COPY,          /* its reply carries two memfds, unless a byte was to be touched */
};

struct checker_request {
	uint32_t magic, op;
	uint32_t work;            /* all but DRAW, OPEN, MAC, SUBKEY */
	struct checker_open open; /* OPEN; DRAW: mode, index, emu */
	struct checker_prep prep; /* PREPARE */
	uint8_t digest[32];       /* MAC: SHA-256 of the text */
	int32_t way;              /* COPY: enum checker_way */
	uint32_t buffer;          /* COPY, of which to touch a byte: of the layout */
	int64_t at;               /* of its payload */
};

struct checker_reply {
	uint32_t magic;
	int32_t code;             /* 0, or an enum exit_code */
	char text[480];
	struct axes axes;         /* DRAW, OPEN */
	uint32_t work, regimes;   /* OPEN */
	int64_t ref_ns;           /* OPEN */
	struct mem_layout layout; /* OPEN */
	double scalars[CHECKER_SCALARS]; /* PREPARE */
	struct compare_result result;    /* VERIFY */
	int32_t same;             /* AGAIN */
	char hex[HASH_HEX];       /* MAC, SUBKEY */
};

#endif
