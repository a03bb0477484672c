/*
 * engine_about.h - what a model is told of the checkpoint and of the processor: settings of the run, written when it begins.
 *
 * So a prompt stays a function of the record: neither a checkpoint of gigabytes nor /proc is looked at again.
 *   model_config {hidden, layers, heads, kv_heads, head_dim, intermediate, vocab, max_positions, tied, rope_theta, eps,
 *                 parameters, step_bytes}
 *   host {cpu, cpus, features}   an engine in C alone; `cpus`: those this process may use
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_ENGINE_ABOUT_H
#define TS_ENGINE_ABOUT_H

#include "buf.h"
#include "qwen3.h"
#include "run.h"

void engine_about_model(const struct qwen3_config *c, cJSON *settings);
void engine_about_host(cJSON *settings);

/* In words, each a paragraph with a newline; nothing where the run has no such setting. */
void engine_about_tell_model(const struct run *r, struct buf *out);
void engine_about_tell_host(const struct run *r, struct buf *out);

/* ---- for tests ---- */

/* "model name" and those of `flags` that a compiler makes use of, from the text of /proc/cpuinfo. */
void engine_about_cpuinfo(const char *text, struct buf *cpu, struct buf *features);

#endif
