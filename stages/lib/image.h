/*
 * image.h - source and plan of one kernel, and the artefact the box made of them.
 *
 * For code whose text we have already: the reference and the baseline of a spec, a champion, a
 * configuration that tune tries. Candidates themselves are compiled by guard, which also gates
 * what came out.
 *
 * image_load reads, parses and checks against the spec; image_build compiles (or finds the
 * result in the box's cache); image_free. A source that does not compile is ok = 0 with the
 * box's code and log, not an error.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_IMAGE_H
#define TS_IMAGE_H

#include "box_call.h"
#include "buf.h"
#include "err.h"
#include "hash.h"
#include "plan.h"
#include "spec.h"

/* Artefacts of one candidate on a GPU, where `choose` may ask for several images: one for each of
 * plan_configs(), in that order. */
struct image_set {
	int n;
	struct plan_config config[PLAN_MAX_CONFIGS];
	char path[PLAN_MAX_CONFIGS][512];
	char sha[PLAN_MAX_CONFIGS][HASH_HEX];
};

struct image {
	struct buf source;
	char source_sha[HASH_HEX], plan_sha[HASH_HEX];
	struct plan *plan;
	int ok;            /* after image_build */
	struct box_result box; /* path, sha256, code, log, isolation; of the first that fails, else the first */
	struct image_set set;  /* after image_build_gpu */
	int nbuilt;            /* of `each`: what the box said of every image, in the set's order */
	struct box_result *each;
};

/* `dir`/`source` and `dir`/`plan`. */
int image_load(struct image *m, const struct spec *s, const char *dir, const char *source,
	       const char *plan, struct err *e);
/* From texts in memory; `what` names the plan in messages. */
int image_text(struct image *m, const struct spec *s, const struct buf *source,
	       const struct buf *plan, const char *what, struct err *e);
/* mode "emu-fast"...; config NULL: the plan's current one; out_dir NULL: cache entry only. */
int image_build(struct image *m, const struct spec *s, const char *mode,
		const struct plan_config *config, const char *out_dir, struct err *e);
/* All images of the plan for a GPU, each gated (cubin.h): files OUT_DIR/cuda-0, cuda-1, ..., and
 * their PTX beside them as cuda-0.ptx; out_dir NULL: cache entries only. `arch` as in gpu.h;
 * `spec_dir` holds the spec's header trees. */
int image_build_gpu(struct image *m, const struct spec *s, const char *spec_dir, const char *arch,
		    const char *out_dir, struct err *e);
/* After image_build_gpu made all: does every image fit the plan at the public and tiny sizes and at the
 * edges of the held-out ones (arguments, registers, shared memory)? 0; 1 with a reason code and words. */
int image_fits(const struct image *m, const struct spec *s, const struct facts *f, char code[48], char text[256],
	       struct err *e);
/* Which image serves a workload: 0..n-1, -1 and the error when none does. */
int image_pick(const struct image_set *set, const struct plan *p, const struct spec *s, const struct axes *a,
	       const struct facts *f, struct err *e);
void image_free(struct image *m);

#endif
