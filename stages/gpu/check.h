/*
 * check.h - what the checker and its device code (check.cu) say to each other.
 *
 * Plain structs, the same in C and in device code; every kernel takes one by value. Text of this
 * file goes in front of check.cu when it is compiled for a GPU, so it includes nothing.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_CHECK_H
#define TS_CHECK_H

typedef unsigned int check_u32;
typedef unsigned long long check_u64;
typedef long long check_i64;

/* enum dtype (dtype.h), by number. */
enum {
	CK_NONE = 0, CK_F64, CK_F32, CK_F16, CK_BF16, CK_E4M3, CK_E5M2, CK_I64, CK_I32, CK_I16, CK_I8, CK_U64,
	CK_U32, CK_U16, CK_U8, CK_BOOL,
};

enum {
	CK_CHUNK = 512,    /* elements that one warp adds up */
	CK_FOLD = 32,      /* partial sums that one thread adds up */
	CK_THREADS = 256,  /* of a block */
	CK_OUTPUTS = 16,   /* SPEC_MAX_TENSORS */
	CK_BUFFERS = 96,   /* MEM_MAX */
};

/* 128 bits of key: words 0, 1 are Philox's key, 2, 3 the upper half of its counter. */
struct check_key {
	check_u32 w[4];
};

/* ---- inputs ---- */

enum { CK_NORMAL, CK_UNIFORM, CK_INTEGER, CK_SPIKES, CK_CONSTANT };
enum { CK_PLAIN, CK_MIXED, CK_NEAR_EQUAL, CK_EXACT_WIDE, CK_EXACT_SMALL };

struct check_fill {
	void *out;
	check_u64 n, row;
	check_u32 dtype, kind, mode, bits;
	double mean, std;         /* normal, spikes */
	double low, high;         /* uniform */
	double rate, scale;       /* spikes */
	double value;             /* constant */
	check_i64 from;           /* integer: from + below(span) */
	check_u64 span;
	struct check_key key;
};

/* One change of a rep. Changes of one input are made in order. */
enum { CK_SET, CK_FLIP, CK_SWAP };
struct check_op {
	void *base;
	check_u64 at, other;
	double value;             /* set; flip: -value where the element is above 0, else value */
	check_u32 dtype, kind, input, pad;
};
struct check_change {
	const struct check_op *op;
	check_u32 n, inputs;
};

/* ---- poison and guards ---- */

/* One segment: random words everywhere; those of the payload pass through masks that make them NaN
 * or large. Made and checked from the key alone: nothing is stored. */
struct check_segment {
	unsigned char *seg;       /* 16-byte aligned */
	check_u64 len, off;       /* of the segment; of the payload in it, a multiple of 16 */
	check_u64 used;           /* payload of this rep */
	check_u64 keep, set;      /* masks over 8 bytes: word & keep | set */
	check_u32 width;          /* only whole elements of this many bytes are masked */
	check_u32 leave;          /* 1: the payload is not ours to write */
	struct check_key key;
	check_u64 *hits;          /* of guard words that changed */
};

/* ---- comparison ---- */

struct check_sums {
	double err2, ref2, base2, push, quanta2;
	check_u64 same;
};

/* Figures of one output. Doubles are kept as their bits, of which the largest is kept. */
struct check_figures {
	check_u64 wrong, nonfinite, nan, poisoned;
	check_u64 worst, row_l2, ratio;
	check_u64 biased;
};
struct check_reference {          /* what is known of a reference; belongs to its set */
	struct check_sums sums;   /* ref2 without infinities */
	check_u64 nan, odd;       /* NaNs; elements that are no integers below 2^24 */
};

/* Everything of one rep, brought back at once. */
struct check_report {
	struct check_figures out[CK_OUTPUTS];
	struct check_sums total[CK_OUTPUTS];
	check_u64 guard[CK_BUFFERS];
	check_u64 hash[4], in_hash[4];
};

/* Elements are cut into groups (rows, or several short rows; the last takes the rest), groups into
 * chunks: `per` of each group but the last, `last` of that. */
struct check_shape {
	check_u64 n, group, groups, per, last;
};

struct check_scan {               /* squares of a reference */
	const double *ref;
	struct check_shape shape;
	struct check_sums *out;
	struct check_reference *about;
};

struct check_compare {
	const void *got;
	const double *ref;
	const void *base;         /* baseline, or NULL */
	struct check_shape shape;
	const struct check_reference *about;
	struct check_sums *out;
	struct check_figures *figures;
	double atol_rms, rtol;
	check_u32 dtype, exact, narrow, pad;
	struct check_segment poison;
};

struct check_integers {
	const void *got, *ref;
	check_u64 n;
	check_u32 width, pad;
	struct check_figures *figures;
	struct check_segment poison;
};

struct check_fold {               /* CK_FOLD partial sums of a group to one */
	const struct check_sums *in;
	struct check_sums *out;
	check_u64 groups, per, last;             /* of `in` */
	check_u64 out_per, out_last;
};

struct check_groups {             /* one sum a group: the worst row */
	const struct check_sums *in;
	struct check_shape shape;
	const struct check_reference *about;
	struct check_figures *figures;
	double ratio_floor, bias;
	check_u32 base, narrow;
};

struct check_hash {
	const unsigned char *data; /* 16-byte aligned */
	check_u64 bytes;
	struct check_key key;
	check_u64 *out;            /* 4 words, added to */
};

#endif
