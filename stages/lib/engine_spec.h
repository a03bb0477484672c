/*
 * engine_spec.h - an engine problem: specs/NAME/spec.json with "kind": "engine".
 *
 * Workloads are batch x (prompt + steps) ids. `public` is shown to the proposer and judged; `proxy` is timed as well
 * and never shown; `odd` is asked at confirmation; `tiny` is for unit tests. Unknown keys are refused, and so are workloads
 * longer than a model of the shape has positions and tiny lists of fewer than ENGINE_TINY_IDS ids.
 *
 *   spec_kind -> engine_spec_parse -> engine_spec_free
 *
 * Times in seconds, sizes in bytes, margins as ln-ratio shares (0.01 is 1 %).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_ENGINE_SPEC_H
#define TS_ENGINE_SPEC_H

#include "err.h"
#include "spec.h"

#include <stddef.h>
#include <stdint.h>

enum spec_kind { SPEC_KERNEL, SPEC_ENGINE };
enum { ENGINE_WORKLOADS = 16, ENGINE_TINY_IDS = 64 };

struct engine_workload {
	char name[SPEC_NAME];
	int batch, prompt, steps;
};

struct engine_spec {
	char name[SPEC_NAME];
	char *description;
	char shape[16];          /* "tiny", "0.6B", ...; "any": the user brings the checkpoint */
	uint64_t seed;
	int cuda;                /* engine.cu; else engine.c */
	int npublic, nproxy, nodd, ntiny;
	struct engine_workload public[ENGINE_WORKLOADS], proxy[ENGINE_WORKLOADS], odd[ENGINE_WORKLOADS], tiny[ENGINE_WORKLOADS];
	double margin, guard;    /* 0.01, -0.03 */
	double gate_native, gate_champion, gate_memory, gate_spread; /* 1.05, 0.05, 0.90, 0.25 */
	double load_s, step_s;   /* 60, 10; load_s at most 120 */
	int64_t source_bytes, files, memory_bytes; /* 262144, 16; of the host: 4 GiB, CUDA 64 GiB */
	char file[256];
};

/* SPEC_KERNEL when there is no "kind". EX_BADINPUT: no JSON, or a kind that is unknown. */
int spec_kind(const char *text, size_t len, enum spec_kind *k, struct err *e);
int engine_spec_parse(const char *text, size_t len, const char *file, struct engine_spec **out, struct err *e);
void engine_spec_free(struct engine_spec *s);

#endif
