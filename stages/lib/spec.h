/*
 * spec.h - a problem: specs/NAME/spec.json.
 *
 * spec_load reads and checks the whole file; after that the struct is read-only and plain.
 * Sizes depend on the axes: `struct axes` holds one value per axis, in spec order, and every
 * size function is overflow-checked and capped by the spec's limits.
 *
 * Life cycle: spec_load, use, spec_free. Errors name file, JSON path and reason, EX_BADINPUT.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_SPEC_H
#define TS_SPEC_H

#include "dtype.h"
#include "err.h"
#include "expr.h"
#include "hash.h"

#include <stddef.h>
#include <stdint.h>

#define SPEC_MAX_AXES 16
#define SPEC_MAX_TENSORS 16   /* inputs, and outputs, each */
#define SPEC_MAX_ID 31        /* characters of an axis, input or output name */
#define SPEC_MAX_RANK 8
#define SPEC_MAX_WORKLOADS 64
#define SPEC_MAX_CONSTRAINTS 32
#define SPEC_MAX_VALUES 64
#define SPEC_MAX_HEADERS 8
#define SPEC_MAX_ARGV 16
#define SPEC_NAME 65

/* ---- fills: how the checker draws an input ---- */

enum fill_kind {
	FILL_NORMAL,          /* mean, std */
	FILL_UNIFORM,         /* [low, high); integers: low..high-1 */
	FILL_WIDE_INTEGER,    /* integers in [low, high), stored in the tensor's dtype */
	FILL_SPIKES,          /* normal(mean, std); a fraction `rate` multiplied by `scale` */
	FILL_INDEX,           /* integers in [from, to), expressions over axes */
	FILL_PERMUTATION,     /* each row (last dimension) is a permutation of 0..n-1 */
	FILL_PAGE_TABLE,      /* distinct integers in [0, to) over the whole tensor */
	FILL_SKEWED_ROUTING,  /* rows of distinct integers in [0, to), Zipf exponent `skew` */
	FILL_INDPTR,          /* non-decreasing, first 0, last = to, steps >= from */
	FILL_CONSTANT,        /* value */
	FILL_ZEROS
};

struct spec_fill {
	enum fill_kind kind;
	double mean, std;      /* 0, 1 */
	double low, high;      /* uniform: 0, 1; wide_integer: -2^15, 2^15 unless the dtype is narrower */
	double rate, scale;    /* spikes: 0.001, 64 */
	double skew;           /* routing: 1.0 */
	double value;          /* constant */
	struct expr *from, *to; /* index "low"/"high"; page_table "pages"; skewed_routing "experts";
	                         * indptr "min_step" and "total". from is NULL when absent (0). */
};
const char *fill_name(enum fill_kind k);

/* ---- comparators ---- */

enum compare_kind {
	COMPARE_TOLERANCE,     /* |got-ref| <= atol_rms*rms(ref) + rtol*|ref|, and the bounds below */
	COMPARE_EXACT,         /* equal values; the sign of zero does not matter */
	COMPARE_TIES,          /* an index: any whose `source` element is within `tie` of the reference's */
	COMPARE_TOPK,          /* row of distinct indices: gathered `source` values equal the reference's, order-free
	                        * unless `sorted` */
	COMPARE_SORT,          /* a permutation that sorts each row of `source`; `stable`: equal keys keep order */
	COMPARE_DISTRIBUTION   /* samples: index drawn with the probabilities in each row of `source` */
};

struct spec_compare {
	enum compare_kind kind;
	double atol_rms, rtol;  /* NAN: the default of dtype and compute class, decided by the judge */
	double rel_l2, row_rel_l2, error_ratio; /* NAN likewise */
	double tie;             /* ties: absolute, in units of source; topk: likewise. 0 */
	int source;             /* input index; -1 none. "source" in JSON */
	int values;             /* topk, sort: output that holds the gathered values; -1 none */
	int sorted, stable, descending;
	double alpha;           /* distribution: false-alarm rate, 1e-6 */
};
const char *compare_name(enum compare_kind k);

/* ---- the problem ---- */

struct spec_tensor {
	char name[SPEC_NAME];
	enum dtype dtype;
	int scalar;             /* shape null: passed by value */
	int rank;               /* 0 for a scalar */
	struct expr *dim[SPEC_MAX_RANK];
	struct spec_fill fill;       /* inputs */
	struct spec_compare compare; /* outputs */
};

struct spec_axis {
	char name[SPEC_NAME];
	int is_const;
	int64_t value; /* const axes */
};

struct axes {
	int64_t v[SPEC_MAX_AXES]; /* by axis index */
};

struct spec_workload {
	char name[SPEC_NAME];
	struct axes gpu, emu; /* complete: const axes filled in, emu falls back to gpu */
	double weight;        /* > 0, 1 by default */
};

/* How one axis of a held-out workload is drawn. */
struct spec_range {
	int set;                /* 0: not given */
	int64_t min, max, multiple_of;
	int nvalues;            /* > 0: one of these */
	int64_t value[SPEC_MAX_VALUES];
	struct expr *equals;    /* computed from axes drawn before it */
};

struct spec_limits {
	int64_t buffer_bytes;    /* one input or output; 16 GiB */
	int64_t total_bytes;     /* all of them; 64 GiB */
	int64_t workspace_bytes; /* all workspaces of a plan; 16 GiB */
	int64_t launches;        /* of one resolved plan; 4096 */
	int64_t source_bytes;    /* kernel.cu; 65536 */
	int64_t compile_s;       /* wall; 120 */
	int64_t run_s;           /* wall of one launch list; 20 (emu: x the emulation's own factor) */
};

struct spec {
	char name[SPEC_NAME], op_type[SPEC_NAME];
	int nplaybooks;                            /* of prompts/playbook/; 0: by op_type */
	char playbook[2][SPEC_MAX_ID + 1];
	char *description;
	int naxes;
	struct spec_axis axis[SPEC_MAX_AXES];
	int nconstraints;
	struct expr *constraint[SPEC_MAX_CONSTRAINTS];
	int ninputs, noutputs;
	struct spec_tensor input[SPEC_MAX_TENSORS], output[SPEC_MAX_TENSORS];
	/* Compute class. tf32: the operands may be rounded to tfloat32 ("operand": "tfloat32"). */
	enum dtype operand, accumulator, intermediate;
	int tf32;
	char *reference_source, *reference_plan;   /* file names inside the spec's folder, or NULL */
	int reference_argc;                        /* oracle command; argv[0] may be a file of the folder */
	char *reference_argv[SPEC_MAX_ARGV + 1];
	char *start;                               /* "start" folder, or NULL */
	int npublic, ntiny, held_out_count;
	struct spec_workload public[SPEC_MAX_WORKLOADS], tiny[SPEC_MAX_WORKLOADS];
	struct spec_range held_out[SPEC_MAX_AXES], held_out_emu[SPEC_MAX_AXES]; /* by axis; emu complete */
	struct expr *cost_bytes, *cost_flops;      /* NULL when absent */
	double margin, guard;                      /* 0.02, -0.03 */
	struct spec_limits limits;
	int nheaders;
	char *header[SPEC_MAX_HEADERS];
	char file[256];                            /* for messages */
};

int spec_load(const char *dir, struct spec **out, struct err *e);
int spec_parse(const char *text, size_t len, const char *file, struct spec **out, struct err *e);
void spec_free(struct spec *s);

int spec_axis_find(const struct spec *s, const char *name);   /* index or -1 */
int spec_input_find(const struct spec *s, const char *name);
int spec_output_find(const struct spec *s, const char *name);

/* Complete axes from name/value pairs: `get` returns 0 and *v for a var axis. */
int spec_axes_bind(const struct spec *s, int (*get)(void *ctx, const char *name, int64_t *v), void *ctx,
		   struct axes *out, struct err *e);
/* Every axis >= 1, every constraint holds, every buffer within limits. */
int spec_axes_check(const struct spec *s, const struct axes *a, struct err *e);
/* An expr_env callback over axes: ctx is a struct spec_axes_env. */
struct spec_axes_env {
	const struct spec *spec;
	const struct axes *axes;
};
int spec_axes_name(void *ctx, const char *name, int64_t *out);

/* A held-out shape. `next` yields uniform 64-bit words. Deterministic in them; -1 EX_BADINPUT when no
 * draw in 10000 satisfies the constraints. `probe` 0: uniform, for the held_out_count workloads that
 * are judged at length and timed; 1: mostly at and beside powers of two, multiples of tiles and the
 * ends of a range, for single judged reps (checker.c: every index from held_out_count on). */
int spec_draw(const struct spec *s, int emu, int probe, uint64_t (*next)(void *ctx), void *ctx,
	      struct axes *out, struct err *e);

/* The edges of what spec_draw may give, no draw among them: all axes at their least, all at their
 * greatest, and each axis alone at the other end; a few steps inwards where a constraint wants it.
 * k from 0: 1 and *out, 0 when edge k cannot satisfy the constraints, -1 after the last. */
int spec_edge(const struct spec *s, int emu, int k, struct axes *out);

/* Sizes near and far that differ from `from` in one axis (and what is computed from it). k from 0: 1 and *out,
 * 0 when step k is not allowed, -1 after the last, or when nothing else may stand there. */
int spec_near(const struct spec *s, int emu, const struct axes *from, int axis, int k, struct axes *out);

/* Sizes. dims may be NULL. A scalar has one element. */
int spec_shape(const struct spec *s, const struct spec_tensor *t, const struct axes *a,
	       int64_t dims[SPEC_MAX_RANK], int64_t *elements, struct err *e);
int spec_bytes(const struct spec *s, const struct spec_tensor *t, const struct axes *a, int64_t *bytes,
	       struct err *e);
/* What the reference writes for output t: float64 for floats, else native. */
int spec_reference_bytes(const struct spec *s, const struct spec_tensor *t, const struct axes *a,
			 int64_t *bytes, struct err *e);
/* A fill's from and to at these axes, checked against the tensor's shape. */
int spec_fill_range(const struct spec *s, const struct spec_tensor *t, const struct axes *a, int64_t *from,
		    int64_t *to, struct err *e);
int spec_cost(const struct spec *s, const struct axes *a, int64_t *bytes, int64_t *flops, struct err *e);

/* The files that make up a spec: all below its folder but dot files; sorted
 * by name, relative to dir. Symbolic links and odd file types are an error. */
struct spec_file {
	char *name;
	char sha[HASH_HEX];
};
struct spec_files {
	int n;
	struct spec_file *file;
};
int spec_files_list(const char *dir, struct spec_files *out, struct err *e);
void spec_files_free(struct spec_files *f);
/* Hash over "name\0sha\n" of every file. */
void spec_files_sha(const struct spec_files *f, char out[HASH_HEX]);
int spec_sha256(const char *dir, char out[HASH_HEX], struct err *e);

#endif
