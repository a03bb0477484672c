/*
 * cubin.h - what a compiled module (ELF of a GPU) contains, and whether we let it run.
 *
 * A reader of untrusted bytes: every offset is checked, nothing is executed, no driver is needed.
 * cubin_parse reads entries with their parameters, registers, shared and local memory, and the data
 * sections; cubin_gate says no with a reason code of guard.*; ptx_gate looks at the PTX of the same
 * compile (all machine code comes from it: threats.md T16, T17, P06), also for what a kernel does with the
 * addresses of variables (cubin_state.c).
 *
 * EX_BADINPUT for bytes that are no such ELF.
 *
 * An artefact of ours says more than its ELF does: the box appends a note (cubin_note_add) with the
 * symbol of each entry of the plan (C++ names are mangled), the spills, and the globals that code can
 * reach (library headers bring a thousand that nothing reads). The driver does not look behind the ELF.
 * So a launcher asks cubin_find(c, ENTRY)->name for the symbol, and cubin_parse's `global` lists what a
 * rep could change; `reload` says that some of it has no name to reach it by.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_CUBIN_H
#define TS_CUBIN_H

#include "buf.h"
#include "err.h"
#include "facts.h"
#include "plan.h"

#include <cjson/cJSON.h>
#include <stddef.h>
#include <stdint.h>

enum { CUBIN_ENTRIES = 64, CUBIN_PARAMS = 128, CUBIN_GLOBALS = 64, CUBIN_NAME = 256 };

struct cubin_param {
	uint32_t offset, size;
};

struct cubin_entry {
	char name[CUBIN_NAME];                  /* symbol: what cuModuleGetFunction takes */
	char entry[CUBIN_NAME];                 /* the plan's name for it; "" unknown */
	int nparams;
	struct cubin_param param[CUBIN_PARAMS]; /* by ordinal */
	int64_t regs, shared, local, spill_bytes; /* per thread; per block without the system's; per thread */
	int64_t max_threads;                    /* launch bound, 0 none */
	int64_t cluster[3];                     /* compiled in, 0 none */
};

struct cubin_global {                           /* writable data */
	char name[CUBIN_NAME];
	uint64_t bytes;
	int init, local;                        /* has an image; not visible by name */
};

struct cubin {
	int sm;                                 /* 90 */
	int nentries;
	struct cubin_entry entry[CUBIN_ENTRIES];
	int nglobals;                           /* that code can reach */
	int hidden;                             /* of them not in the list: too many, or too long a name */
	int reload;                             /* one of them is local or hidden */
	struct cubin_global global[CUBIN_GLOBALS];
	uint64_t global_bytes, const_bytes;     /* .nv.global*, .nv.constant3 */
	int calls;                              /* has functions that are called: one that calls itself takes
	                                         * stack that no record tells of */
	int init_code;                          /* runs something when loaded */
	int undefined;                          /* symbols that nothing defines */
	char undefined_name[CUBIN_NAME];
	struct facts device;                    /* after cubin_facts */
};

enum { CUBIN_CONST_MAX = 16 << 10, CUBIN_GLOBAL_MAX = 64 << 10 }; /* what gates allow */

int cubin_parse(const void *data, size_t len, struct cubin *out, struct err *e);
const struct cubin_entry *cubin_find(const struct cubin *c, const char *entry);

/* 0 fine; 1: *code and text say why not. `entries`: what the plan launches. */
int cubin_gate(const struct cubin *c, const char *const *entries, size_t n, char code[48], char text[256]);
int ptx_gate(const char *ptx, size_t len, const char *const *entries, size_t n, char code[48], char text[256]);
/* Clocks and grid identities are read by library functions that wait (cuda::barrier, grid.sync()). How
 * often does this PTX? Then `lines`, the PTX of the same source with line information, must show that each
 * read lies in such a function. ptx_gate makes sure that the source wrote no line information itself. */
int ptx_clocks(const char *ptx, size_t len);
int ptx_clock_gate(const char *lines, size_t len, char code[48], char text[256]);
/* Arguments of every launch against the parameters of its entry: count and size. Same return. */
int cubin_args(const struct cubin *c, const struct launches *l, char text[256]);

/* Make facts answer occupancy(entry) from the registers and static shared memory in `c` (borrowed, and
 * keeps the device's limits). Which entries `c` lacks are answered without registers. */
void cubin_facts(struct cubin *c, struct facts *f);
/* The note: entry[i] of the plan is symbol[i]; `log` is of ptxas -v (spills), may be NULL. */
int cubin_note_add(struct buf *cubin, const char *ptx, size_t len, const char *const *entry,
		   char *const *symbol, size_t n, const char *log, struct err *e);
/* Entries and sizes as JSON, for verdicts. */
cJSON *cubin_json(const struct cubin *c);

#endif
