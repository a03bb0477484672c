/*
 * verdict.h - the envelope that every step writes, and its strict reader.
 *
 * Life cycle: verdict_init, fill (verdict_set, verdict_input, verdict_output, and the stage's
 * own figures with jw_* into v->data), verdict_write, verdict_free. Stages get a filled-in one
 * from stage.h and only add to it.
 *
 * Key order is fixed: schema run stage trial attempt verdict status reason inputs outputs device
 * proposer simulated emulated started elapsed_s tool isolation headline data mac.
 *
 * Writing order: the side files named by verdict_output and their folders are synced, then the
 * JSON is written by rename. A verdict that exists therefore has its side files.
 *
 * MAC: computed over the exact bytes of the file as it would be without the "mac" member. Only
 * the checker knows the key, so the text goes to it through v->mac and comes back as 64 hex
 * digits; verdict_body recovers those bytes from a file for checking.
 *
 * Reading: a file that is empty, torn, no JSON, of another schema, trial or step counts as
 * missing, with EX_BADINPUT (make -t and full disks leave such files).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_VERDICT_H
#define TS_VERDICT_H

#include "buf.h"
#include "err.h"
#include "hash.h"
#include "jsonw.h"
#include "relies.h"
#include "trial.h"

#include <cjson/cJSON.h>

#define VERDICT_SCHEMA "touchstone/verdict/1"

enum verdict_kind {
	V_NONE,         /* not decided yet: refused by verdict_write */
	V_PASS,         /* go on */
	V_REJECT,       /* the candidate's fault: trial closed */
	V_INCONCLUSIVE, /* neither better nor worse by the evidence: trial closed */
	V_INVALID,      /* our fault or the machine's: trial closed, uncharged */
	V_SKIP,         /* closed upstream, or not needed */
	V_NA,           /* does not apply, go on (tune without tunables) */
};

const char *verdict_kind_name(enum verdict_kind k);
enum verdict_kind verdict_kind_parse(const char *s); /* V_NONE when unknown */

/* Return 0 and the MAC of `len` bytes, or -1. */
typedef int verdict_mac_fn(void *ctx, const void *body, size_t len, char mac[HASH_HEX],
			   struct err *e);

struct verdict_pair {
	char *name;
	char sha[HASH_HEX];
};

struct verdict {
	char run[TRIAL_ID];
	char trial[TRIAL_ID];
	enum step step;
	enum verdict_kind kind;
	const char *status;          /* NULL: from kind and relies ("clean", "rule-dependent", ...; relies.h) */
	struct relies relies;        /* written as data.relies, unless there is none */
	char code[64];               /* reason code, known to reason.h */
	char *message;               /* one line for people */
	char *headline;              /* short text for the progress line ("1.31x (+-0.4%)"), or NULL */
	struct verdict_pair *inputs;
	size_t ninputs;
	struct verdict_pair *outputs; /* name relative to the trial folder */
	size_t noutputs;
	cJSON *device;               /* object, owned; NULL: {"kind": DEVICE of the trial} */
	cJSON *proposer;             /* object, owned; NULL: null */
	int simulated, emulated;
	char started[32];            /* RFC 3339, UTC */
	double elapsed_s;
	char tool[32];
	char tool_sha[HASH_HEX];
	char device_name[TRIAL_NAME];
	const char *isolation[16];   /* static strings: "no_new_privs", "rlimits", "seccomp", ... */
	size_t nisolation;
	struct jsonw data;           /* open object: add members with jw_*; closed by verdict_write */
	verdict_mac_fn *mac;         /* NULL: no MAC */
	void *mac_ctx;
};

/* The version in every envelope's tool.version. */
#define VERDICT_TOOL_VERSION "0.1"

void verdict_init(struct verdict *v, const char *run, const char *trial, enum step step);
void verdict_free(struct verdict *v);

/* Decide. The message is cleaned to one line of printable UTF-8. Last call wins. */
void verdict_set(struct verdict *v, enum verdict_kind k, const char *code, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
void verdict_headline(struct verdict *v, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void verdict_input(struct verdict *v, const char *name, const char sha[HASH_HEX]); /* replaces */
void verdict_isolation(struct verdict *v, const char *layer);                      /* once each */

/* The layers of "a, b, c", which lives as long as the verdict and is cut up. NULL is none. */
void verdict_isolation_list(struct verdict *v, char *list);

/* Name a side file that is complete on disk: hashed here, synced by verdict_write. `file` is
 * relative to the trial folder. verdict_output_sha trusts a hash the caller computed from the
 * very bytes it wrote. */
int verdict_output(struct verdict *v, const char *file, struct err *e);
void verdict_output_sha(struct verdict *v, const char *file, const char sha[HASH_HEX]);

/* Sync side files, add the MAC, write trials/NNNN/STEP.json whole. */
int verdict_write(struct verdict *v, struct err *e);

/* A verdict read back. Strings point into json. */
struct verdict_in {
	char path[TRIAL_PATH];
	char sha[HASH_HEX];  /* of the file's bytes */
	cJSON *json;
	enum step step;
	enum verdict_kind kind;
	const char *run, *code, *message;
	const cJSON *inputs, *outputs, *data; /* objects, never NULL after success */
	char *text;          /* the bytes read */
	size_t len;
};

int verdict_read(const char *trial, enum step step, struct verdict_in *in, struct err *e);
/* The same of a text that is no file yet; it is copied. */
int verdict_parse(const char *text, size_t len, const char *trial, enum step step, struct verdict_in *in,
		  struct err *e);
void verdict_in_free(struct verdict_in *in);
/* Hash an input or output by name; NULL when not named. */
const char *verdict_in_input(const struct verdict_in *in, const char *name);
const char *verdict_in_output(const struct verdict_in *in, const char *file);

/* The bytes the MAC was computed over, and the MAC. 0, or -1 when there is no MAC at the end. */
int verdict_body(const struct verdict_in *in, struct buf *body, char mac[HASH_HEX],
		 struct err *e);

/* The file without its MAC for a verdict under construction (what v->mac is called with). */
void verdict_text(struct verdict *v, struct buf *out);

void verdict_now(char out[32]); /* RFC 3339, UTC, milliseconds */

#endif
