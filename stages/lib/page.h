/*
 * page.h - the report page: one self-contained HTML file from closed trials.
 *
 * Pure formatting: rows in, text out; reads no files. Everything that comes from a record is
 * escaped here, and the page carries a policy that forbids loading anything, so candidate text
 * can neither run nor fetch (threats.md J01).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_PAGE_H
#define TS_PAGE_H

#include "buf.h"

#include <stddef.h>

/* A speed-up with its interval; est 0 means not measured, lo and hi 0 mean no interval. */
struct page_ratio {
	double est, lo, hi;
};

/* One closed trial, as trials/log.jsonl tells it. Strings are owned by the caller. */
struct page_row {
	const char *trial, *run, *spec, *device, *verdict, *code, *message, *item, *hypothesis;
	const char *proposer; /* "sweep", "openai nebius/model" */
	const char *started, *candidate, *parent, *closed_by;
	const char *status;   /* "clean", "rule-dependent", ...; NULL: an old record */
	const char *relies;   /* what a rule-dependent one relies on, in words; NULL none */
	const char *first_error; /* code of the attempt that was repaired; NULL none was */
	int repairs;             /* turns */
	const char *plateau;     /* "widened", "stopped" by PLATEAU; NULL neither */
	struct page_ratio vs_champion, vs_baseline;
	int kept, emulated, simulated;
	int weak; /* kept although too little isolation held (ALLOW_WEAK=1) */
};

/* Sources of a trial for its fold-out; NULL where not embedded. */
struct page_source {
	const char *kernel, *plan, *patch;
	const char *file; /* name of what `kernel` holds: "kernel.cu", "engine.c", "engine.cu" */
	const char *dir;  /* folder of the record, relative to the page; NULL: not here */
	const char *from; /* FROM= that make replay wants; NULL: the trial is one of trials/ */
};

/* What one run of the champion takes at one public size, on a GPU; 0 where not measured. */
struct page_size {
	const char *name, *bound; /* "memory", "compute" */
	double time_us, gbs, tflops, percent;
	const char *rival; /* the fastest other implementation measured there by tests/gpu/compare.py, or NULL */
	double rival_us;
};

/* What the champion, an engine, does at one workload, and how near to the floor (1: at it); 0 where not known. */
struct page_work {
	const char *name;
	int batch, prompt, steps;
	double total_s, ttft_s, tpot_s, tokens_s, of_floor, ttft_of_floor, tpot_of_floor, native_s;
};

/* The GPU, and what it reached at most when it was measured; 0 where it was not. */
struct page_machine {
	const char *name, *arch, *driver, *toolkit;
	double copy_gbs, read_gbs, fp32_tflops, bf16_tflops;
};

/* What a run has spent, by its ledger. */
struct page_spend {
	const char *run;
	long long calls, tokens;
	double usd, gpu_s;
};

/* One problem on one device: rows in trial order. */
struct page_group {
	const struct page_row **row;
	struct page_source *source; /* parallel to row */
	size_t n;
	const struct page_row *start; /* the trial that was start/ as it is shipped, or NULL */
	const struct page_size *size; /* of the champion */
	size_t sizes;
	const struct page_work *work; /* of the champion of an engine problem, instead of sizes */
	size_t works;
	const char *ceilings;         /* where its floors are from: "measured", "data sheet" */
	const struct page_machine *machine; /* NULL: no GPU */
	const struct page_spend *spend;     /* of runs; NULL: not told, as for what is shipped */
	size_t spends;
};

struct page_state {
	const char *title;
	const char *now;     /* when this page was made */
	const char *running; /* "r0003: 7 of 10 trials" while a run is on, else NULL */
	const char *from;    /* the records it was made from, "trials/log.jsonl" */
};

void page_begin(struct buf *out, const struct page_state *s);
void page_group(struct buf *out, const struct page_group *g);
void page_end(struct buf *out, const struct page_state *s);

void page_escape(struct buf *out, const char *text);
/* `text`, escaped, between two pieces of HTML. */
void page_element(struct buf *out, const char *open, const char *text, const char *close);
void page_ratio_text(struct buf *out, const struct page_ratio *r);

/* What a trial was worth against the baseline: measured directly, or, while nothing was kept before it, against
 * the champion of then, which was the baseline. est 0: not known. */
struct page_ratio page_worth(const struct page_group *g, const struct page_row *r);
/* The champion against start/: directly where they met, else the quotient of their ratios to the baseline. */
struct page_ratio page_over_start(const struct page_group *g, const struct page_row *champion);
/* page_search.c: proposers and runs: how many proposals, kept, unusable replies, and the cost. */
void page_search(struct buf *out, const struct page_group *g);
/* page_gpu.c: the table of sizes under the headline. */
void page_sizes(struct buf *out, const struct page_group *g);
/* page_engine.c: the table of workloads in its place. */
void page_works(struct buf *out, const struct page_group *g);

/* Best-so-far staircase over trials, as inline SVG. */
void page_staircase(struct buf *out, const struct page_group *g);

#endif
