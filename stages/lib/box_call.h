/*
 * box_call.h - compile a candidate in the box (stages/roles/box.c), the only compiler user.
 *
 * Text in, artefact out: the caller passes the source it has read and hashed; the result names
 * the artefact's SHA-256. Identical requests cost nothing: a content-addressed cache under
 * .build/cache/emu/ is keyed by everything that goes in (source, macros, mode, knobs, compiler
 * version, every file of the emulation tree and of the box itself) and each entry is verified by hash when used.
 *
 * A source that does not compile is a result (ok 0, a reason code and a log), not an error.
 * Errors (-1) are ours: box missing, no compiler, system call failed.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_BOX_CALL_H
#define TS_BOX_CALL_H

#include "buf.h"
#include "confine.h"
#include "err.h"
#include "hash.h"

#include <cjson/cJSON.h>
#include <stddef.h>
#include <stdint.h>

struct plan_compile;

#define BOX_LOG_MAX 16384 /* bytes of compiler log kept, printable ASCII and newline */

struct box_macro {
	const char *name;
	int64_t value;
};

struct box_request {
	const char *mode; /* "emu-fast", "emu-sanitize", "emu-race" or "cuda" */
	const char *source; /* kernel.cu, any text */
	size_t source_len;
	const char *const *entries; /* kernel names the plan launches */
	size_t entry_count;
	const struct box_macro *macros; /* -DNAME=value: tunables and const axes */
	size_t macro_count;
	int fast_math;       /* plan's compile.fast_math */
	/* mode "cuda" */
	const char *arch;    /* "sm_90a" */
	const struct plan_compile *knobs; /* all of them; NULL: the defaults */
	const char *const *headers; /* declared trees: absolute folders, read-only in the box */
	size_t header_count;
	int trusted;         /* 1: our own code (stages/gpu, references): not gated */
	const char *out_name; /* file name in out_dir; NULL: the mode */
	const char *out_dir; /* artefact is written as OUT_DIR/MODE; NULL: only the cache entry */
	double wall_s;       /* 0: 120 */
	uint64_t memory;     /* 0: 4 GiB */
	int no_cache;        /* 1: compile even if cached (tests) */
};

struct box_result {
	int ok;
	char code[48];     /* "ok", or compile.error, compile.limit, compile.timeout, compile.gate... */
	char message[256]; /* one line for people */
	char log[BOX_LOG_MAX + 1]; /* scrubbed: no path of this machine */
	char sha256[HASH_HEX];     /* of the artefact */
	char path[4096];   /* where it lies: OUT_DIR/NAME, or the cache entry */
	char ptx[4096];    /* mode "cuda": its PTX beside it, path + ".ptx" */
	char ptx_sha256[HASH_HEX];
	cJSON *facts;      /* what the ELF scan found (object), or NULL */
	char compiler[128];
	double seconds;    /* of the compile that made it */
	int cached;
	char isolation[CONFINE_LIST]; /* of the box that made it */
};

int box_compile(const struct box_request *q, struct box_result *r, struct err *e);
void box_result_free(struct box_result *r);
/* Leave in `all` the layers that held in n more builds, too (one may be an old one from the cache); `first`: there
 * were none before them. */
void box_isolation(const struct box_result *r, int n, int first, char all[CONFINE_LIST]);

#endif
