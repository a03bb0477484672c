/*
 * plan.h - the launch plan: plan.json of a candidate, and of a reference or baseline.
 *
 *   plan_parse    strict JSON text -> struct plan; grammar only
 *   plan_check    the plan against a spec: buffers, roles, dtypes, names; no numbers yet
 *   plan_resolve  plan + axes + device facts -> struct launches, plain numbers for a launcher;
 *                 every size and device limit is checked here
 *   plan_config_* the space of tunables, and which point of it is chosen
 *   plan_write    the plan again as canonical JSON
 *
 * Nothing that comes out of plan_resolve refers to the plan: a launcher needs struct launches and
 * addresses only. Errors name file, JSON path and reason; EX_BADINPUT throughout.
 *
 * Grammar: see plan_parse.c and tests/plans/.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_PLAN_H
#define TS_PLAN_H

#include "buf.h"
#include "dtype.h"
#include "err.h"
#include "expr.h"
#include "facts.h"
#include "jsonw.h"
#include "spec.h"

#include <stdint.h>

#define PLAN_MAX_BYTES 65536
#define PLAN_MAX_ENTRIES 32
#define PLAN_MAX_TUNABLES 32
#define PLAN_MAX_VALUES 64
#define PLAN_MAX_CHOOSE 16
#define PLAN_MAX_CONSTRAINTS 64
#define PLAN_MAX_WORKSPACES 8
#define PLAN_MAX_LAUNCHES 64   /* as written; after repeat: spec limits.launches */
#define PLAN_MAX_ARGS 64
#define PLAN_MAX_SELECT 8
#define PLAN_MAX_PARAM 4096    /* bytes of one launch's parameters */
#define PLAN_MAX_SPACE 1000000000000LL
#define PLAN_MAX_CONFIGS 4      /* images that `choose` may ask for */
#define PLAN_MAX_WHENS 12       /* different conditions in all `choose` together */
#define PLAN_NAME 65

/* ---- the plan as written ---- */

struct plan_choose {
	struct expr *when; /* over axes and device facts */
	int64_t value;
};

struct plan_tunable {
	char name[PLAN_NAME];
	int nvalues;
	int64_t value[PLAN_MAX_VALUES];
	int64_t current;
	int nchoose;
	struct plan_choose choose[PLAN_MAX_CHOOSE];
};

/* Compiler knobs, from a fixed list. */
struct plan_compile {
	int fast_math;      /* false */
	int ftz;            /* flush denormals: null = follow fast_math; -1 null */
	int prec_div;       /* -1 null */
	int prec_sqrt;      /* -1 null */
	int fmad;           /* contract a*b+c: true */
	int max_registers;  /* 0 = null; else 16..255 */
	int opt_level;      /* ptxas 0..3; 3 */
	int std;            /* C++ standard 11, 14, 17, 20; 17 */
	const char *arch;   /* "sm_90a": what the source requires; NULL: the device's own. emu: ignored */
};

struct plan_workspace {
	char name[PLAN_NAME];
	struct expr *when;  /* NULL: always; else 0 bytes where it does not hold */
	struct expr *bytes;
	int zero;           /* zeroed inside the timed window */
};

struct plan_tensor_map {
	char buffer[PLAN_NAME];         /* input, output or, */
	int workspace;                  /* when set, workspace */
	struct expr *offset;            /* bytes; NULL 0 */
	enum dtype dtype;               /* DT_NONE: the buffer's */
	int tf32;                       /* "tfloat32": FLOAT32 elements read as TFLOAT32 */
	int rank;                       /* 1..5, innermost first */
	struct expr *dim[5], *stride[4], *box[5], *step[5]; /* step NULL: 1 */
	int swizzle, interleave, l2_promotion, oob_fill;    /* CUtensorMap enum values */
};

enum plan_arg_kind {
	PLAN_IN, PLAN_OUT, PLAN_INOUT, PLAN_WORKSPACE, PLAN_SELECT, PLAN_AXIS, PLAN_SCALAR, PLAN_CONST,
	PLAN_EXPR, PLAN_MAP
};

struct plan_arg {
	enum plan_arg_kind kind;
	char name[PLAN_NAME];           /* buffer, axis or scalar */
	struct expr *offset;            /* workspace, select: bytes; NULL 0 */
	int nselect;
	char select[PLAN_MAX_SELECT][PLAN_NAME];
	struct expr *value;             /* expr; select: the index */
	enum dtype type;                /* axis, const, expr */
	double number;                  /* const of a float type */
	int64_t integer;                /* const of an integer type */
	struct plan_tensor_map *map;
};

struct plan_launch {
	char entry[PLAN_NAME];
	struct expr *when;              /* NULL: always */
	char repeat_var[PLAN_NAME];     /* "" : no repeat */
	struct expr *repeat_count;      /* NULL with repeat_var set: joins the loop before it */
	int ngrid, nblock, ncluster;
	struct expr *grid[3], *block[3], *cluster[3];
	struct expr *shared;            /* NULL 0 */
	int cooperative, pdl;
	int nargs;
	struct plan_arg *arg;
};

struct plan {
	char file[256];                 /* for messages */
	int nentries;
	char entry[PLAN_MAX_ENTRIES][PLAN_NAME];
	int ntunables;
	struct plan_tunable *tunable;
	int nconstraints;
	struct expr *constraint[PLAN_MAX_CONSTRAINTS];
	struct plan_compile compile;
	int nworkspaces;
	struct plan_workspace workspace[PLAN_MAX_WORKSPACES];
	int nlaunches;
	struct plan_launch *launch;
};

int plan_parse(const char *text, size_t len, const char *file, struct plan **out, struct err *e);
void plan_free(struct plan *p);
int plan_check(const struct plan *p, const struct spec *s, struct err *e);
void plan_write(const struct plan *p, struct jsonw *w, const char *key);

/* ---- the plan in numbers ---- */

enum buffer_role { ROLE_INPUT, ROLE_OUTPUT, ROLE_WORKSPACE };
enum arg_kind { ARG_BUFFER, ARG_BYTES, ARG_SCALAR, ARG_MAP };

/* A tensor map in numbers, ready for cuTensorMapEncodeTiled; enum fields hold the driver's values. */
struct tensor_map {
	int dtype;                      /* CUtensorMapDataType */
	int element_bytes;
	int rank;
	uint64_t dim[5];
	uint64_t stride[4];             /* bytes, of dimensions 1.. */
	uint32_t box[5], step[5];
	int swizzle, interleave, l2_promotion, oob_fill;
};

struct launch_arg {
	enum arg_kind kind;
	enum buffer_role role;          /* BUFFER, MAP */
	int index;                      /* BUFFER, MAP: within its role; SCALAR: input index */
	int writes;                     /* BUFFER: bound as out, inout or workspace */
	int64_t offset;                 /* BUFFER, MAP: bytes into the buffer */
	int n;                          /* BYTES, SCALAR: parameter size */
	uint8_t data[128];              /* BYTES: little endian; SCALAR: zero until launches_scalar */
	struct tensor_map map;          /* MAP: a 128-byte parameter, 64-byte aligned */
};

struct launch {
	char entry[PLAN_NAME];
	uint32_t grid[3], block[3], cluster[3]; /* cluster 1,1,1 when none */
	int has_cluster;
	uint32_t shared;                /* dynamic shared memory, bytes */
	int cooperative, pdl;
	int nargs;
	struct launch_arg *arg;
};

struct launch_workspace {
	char name[PLAN_NAME];
	int64_t bytes;                  /* may be 0: unused at this size */
	int zero;                       /* to be zeroed; never set at 0 bytes */
};

struct launches {
	int nworkspaces;
	struct launch_workspace workspace[PLAN_MAX_WORKSPACES];
	int n;
	struct launch *launch;
};

/* At `axes` on a device; tunables as plan_config_for says. Reference plans: `reference` set makes
 * float outputs 8 bytes an element. */
int plan_resolve(const struct plan *p, const struct spec *s, const struct axes *a, const struct facts *f,
		 int reference, struct launches *out, struct err *e);
void launches_free(struct launches *l);
/* most[i]: raised to the dynamic shared memory that launches of the plan's entry i ask for. */
void launches_shared(const struct launches *l, const struct plan *p, int64_t most[PLAN_MAX_ENTRIES]);
/* After the compile: static (from the artefact) and dynamic (launches_shared) fit one block. */
int plan_shared_fits(const struct plan *p, const struct facts *f, const int64_t fixed[PLAN_MAX_ENTRIES],
		     const int64_t most[PLAN_MAX_ENTRIES], struct err *e);
/* Put the value of scalar input `index` into every argument that takes it. */
void launches_scalar(struct launches *l, int index, const void *data, int n);

/* Resolve at every public and tiny workload and at the edges of the held-out ranges (as the device
 * sees them: emu and sim use the emu sizes). The first that fails is an error. */
struct plan_sizes {
	int n;                                      /* public, then tiny, that passed */
	int64_t launches[2 * SPEC_MAX_WORKLOADS];
	int edges;
	int64_t shared[PLAN_MAX_ENTRIES];           /* as launches_shared */
};
int plan_sizes(const struct plan *p, const struct spec *s, const struct facts *f, int reference,
	       struct plan_sizes *out, struct err *e);

/* ---- tunables ---- */

struct plan_config {
	int n;
	int64_t v[PLAN_MAX_TUNABLES]; /* by tunable */
};

void plan_config_current(const struct plan *p, struct plan_config *c);
/* The effective one at a workload: `choose` applied over `current`, unless the device builds one
 * image for all sizes (facts.one_config: emu). */
int plan_config_for(const struct plan *p, const struct spec *s, const struct axes *a, const struct facts *f,
		    struct plan_config *c, struct err *e);
int plan_config_equal(const struct plan_config *a, const struct plan_config *b);
/* Make c current and drop every `choose`. Each value must be one of the tunable's. */
int plan_config_set(struct plan *p, const struct plan_config *c, struct err *e);
/* Append a per-workload choice for one tunable ("M <= 64" -> value); the first that holds wins. */
int plan_choose_add(struct plan *p, const char *tunable, const char *when, int64_t value, struct err *e);

/* The space is the product of the value lists, first tunable slowest. -1 when beyond PLAN_MAX_SPACE. */
int plan_space(const struct plan *p, int64_t *size, struct err *e);
void plan_config_at(const struct plan *p, int64_t index, struct plan_config *c);
int64_t plan_config_index(const struct plan *p, const struct plan_config *c); /* -1: not in the space */
/* *legal = every constraint holds. a may be NULL: constraints that name var axes then do not count. */
int plan_config_legal(const struct plan *p, const struct spec *s, const struct axes *a, const struct facts *f,
		      const struct plan_config *c, int *legal, struct err *e);

/* The different configurations that `choose` can lead to, whatever the workload: each is an image
 * of its own. -1 when there are more than PLAN_MAX_CONFIGS. */
int plan_configs(const struct plan *p, struct plan_config out[PLAN_MAX_CONFIGS], int *n, struct err *e);

/* Macros of a compile: tunables and const axes, "BM=128", "AXIS_H=4096"; NULL after the last. */
char **plan_macros(const struct plan *p, const struct spec *s, const struct plan_config *c);
void plan_macros_free(char **m);

#endif
