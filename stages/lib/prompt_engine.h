/*
 * prompt_engine.h - the parts of a prompt that engine problems have in their own way (prompt.h).
 *
 * Told are public workloads alone: of proxies, odd sizes and their times nothing is said, and a message that has the place
 * of one in a list says "a workload that is not shown".
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_PROMPT_ENGINE_H
#define TS_PROMPT_ENGINE_H

#include "proposal.h"

/* Each file between fences, comments stripped but for the lines of declared tunables. `lines`: keep empty lines, so that line
 * numbers hold. */
void prompt_engine_files(const struct engine_files *f, const char *salt, int lines, struct buf *out);

/* The checkpoint's dimensions and the processor or GPU. */
void prompt_engine_model(const struct stage *s, const struct engine_spec *k, struct buf *out);
int prompt_engine_device(const struct stage *s, const struct proposal *p, struct buf *out, struct err *e);
/* engine_protocol.h, as candidates get it. */
int prompt_engine_protocol(struct proposal *p, struct buf *out, struct err *e);

/* Times of the champion where its own trial measured them. */
int prompt_engine_measured(struct stage *s, const struct proposal *p, struct buf *out, struct err *e);
/* Those of a closed trial, a line for each public workload; nothing where none were taken. */
void prompt_engine_figures(const struct engine_spec *k, const char *trial, struct buf *out);

/* A verdict's message without the names of workloads that are not shown. */
void prompt_engine_message(const char *message, struct buf *out);

/* ---- for tests ---- */

/* Bench's or confirm's data.engine, public workloads alone, each line after `lead`. */
void prompt_engine_workloads(const struct engine_spec *k, const cJSON *engine, const char *lead, struct buf *out);

#endif
