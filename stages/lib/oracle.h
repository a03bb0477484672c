/*
 * oracle.h - one workload inside the checker: inputs, references, verdict of a rep.
 *
 * Owns the memory that arms map, and two arms of its own: the reference (float64 outputs, run
 * in its own confined child on memory that no candidate maps) and, on request, the baseline,
 * whose error is the measure of a candidate's. Only the checker links this module: references
 * and unused input sets live in its private memory.
 *
 * oracle_open -> (oracle_prepare -> oracle_verify [-> oracle_again]) ... -> oracle_close.
 * Keys come from the caller and are not kept beyond the calls, except the stage key's copy in
 * the struct, wiped by oracle_close.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_ORACLE_H
#define TS_ORACLE_H

#include "arm.h"
#include "checker_call.h"
#include "image.h"
#include "run.h"

/* Payloads that lie one after the other in one piece begin at multiples of 16 bytes: they are read as what
 * they are. */
static inline uint64_t oracle_step(uint64_t bytes)
{
	return (bytes + 15) / 16 * 16;
}

/* Images of the reference and the baseline: made once per process, at the first workload that
 * needs them. Zero it first, oracle_kit_free at the end. */
struct oracle_kit {
	const struct run *run; /* files are read through its pins; NULL: straight from the folder */
	const char *dir;       /* of the spec */
	struct image ref, base;
	int has_ref, has_base;
};

/* One of the checker's own arms. */
struct oracle_side {
	const struct image *image;
	struct mem mem;   /* its outputs and workspaces; the inputs are the workload's */
	struct arm *arm;
	int open;
};

/* Content of one set, kept while unperturbed reps use it. */
struct oracle_set {
	int valid;
	uint32_t set;
	enum fill_regime regime;
	uint8_t *in;      /* input payloads, in order */
	uint8_t *ref;     /* reference outputs, in order */
	uint8_t *base;    /* baseline outputs, or NULL */
	double scalars[CHECKER_SCALARS];
};

struct oracle {
	const struct spec *spec;
	const char *spec_dir, *device; /* spec_dir: of the kit */
	struct axes axes;
	struct mem mem;
	struct oracle_side ref, base;
	int has_base;
	uint32_t regimes;        /* bit per regime that makes sense here */
	uint64_t in_bytes, ref_bytes, out_bytes; /* payload totals */
	struct oracle_set ring[CHECKER_RING];
	struct oracle_base {     /* inputs of a set before a rep's changes: drawing them is most of the work */
		uint8_t *in;
		uint32_t set;
		enum fill_regime regime;
	} plain[CHECKER_RING];
	struct oracle_set now;   /* of this rep; buffers owned, or borrowed from the ring */
	int borrowed, prepared;
	struct checker_prep prep;
	uint8_t key[32];         /* stage key and workload */
	uint8_t hash[32];        /* outputs at verify */
};

void oracle_kit_free(struct oracle_kit *k);
int oracle_open(struct oracle *o, struct oracle_kit *kit, const struct spec *spec, const char *device,
		const struct axes *axes, const struct checker_open *q, const uint8_t key[32],
		struct err *e);
int oracle_prepare(struct oracle *o, const struct checker_prep *p, double scalars[CHECKER_SCALARS],
		   struct err *e);
int oracle_verify(struct oracle *o, struct compare_result *r, struct err *e);
int oracle_again(struct oracle *o, int *same, struct err *e);
void oracle_close(struct oracle *o);

/* oracle_side.c: buffers of a layout in the order of the spec, and the checker's own arms. */
int oracle_add_inputs(struct mem_layout *l, const struct spec *s, const struct axes *a, struct err *e);
int oracle_add_outputs(struct mem_layout *l, const struct spec *s, const struct axes *a, int reference,
		       struct err *e);
int oracle_add_workspaces(struct mem_layout *l, const uint64_t *ws, uint32_t n, struct err *e);
int oracle_kit_image(const struct oracle_kit *k, struct image *m, int *has, const struct spec *s,
		     const char *source, const char *plan, struct err *e);
int oracle_side_open(struct oracle *o, struct oracle_side *d, const struct image *image, int reference,
		     struct err *e);
void oracle_side_close(struct oracle_side *d);
/* For tests of the judge: the right outputs in a candidate's outputs, as they lie in memory that was
 * recycled, or behind each output as far as there is slack. */
void oracle_expose(struct oracle *o, int behind);

/* Reference by a command (spec "reference": {"command": [...]}): inputs and outputs as files. */
int oracle_command(const struct spec *s, const char *spec_dir, const struct axes *a,
		   const uint8_t *in, const double *scalars, uint8_t *ref, struct err *e);

#endif
