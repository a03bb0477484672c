/*
 * cubin_gate.c - see cubin.h: may this module run, does it fit its plan, how full is an SM.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cubin_part.h"

#include "defence.h"
#include "jsonw.h"

#include <stdio.h>
#include <string.h>

static int refuse(char out[48], char text[256], const char *code, const char *fmt, const char *name)
    __attribute__((format(printf, 4, 0)));

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
static int refuse(char out[48], char text[256], const char *code, const char *fmt, const char *name)
{
	snprintf(out, 48, "%s", code);
	snprintf(text, 256, fmt, name);
	return 1;
}
#pragma GCC diagnostic pop

static int is_entry(const struct cubin_entry *k, const char *const *entries, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(k->entry[0] ? k->entry : k->name, entries[i]))
			return 1;
	return 0;
}

int cubin_gate(const struct cubin *c, const char *const *entries, size_t n, char code[48], char text[256])
{
	for (size_t i = 0; i < n; i++)
		if (!cubin_find(c, entries[i]))
			return refuse(code, text, "guard.entry_missing",
				      "the plan's entry '%.100s' is not in the module", entries[i]);
	for (int i = 0; i < c->nentries; i++)
		if (!is_entry(&c->entry[i], entries, n) && DEFENCE("guard.entry_extra"))
			return refuse(code, text, "guard.entry_extra",
				      "the kernel '%.100s' is not an entry of the plan", c->entry[i].name);
	if (c->undefined && DEFENCE("guard.undefined_symbol"))
		return refuse(code, text, "guard.undefined_symbol",
			      "the module needs '%.100s', which kernels may not use "
			      "(printf, malloc, launches and functions of other modules)",
			      c->undefined_name);
	if (c->init_code && DEFENCE("guard.init_code"))
		return refuse(code, text, "guard.init_code", "the module runs code when it is loaded%s", "");
	if (c->const_bytes > CUBIN_CONST_MAX && DEFENCE("guard.constant"))
		return refuse(code, text, "guard.constant", "more than 16 KiB of __constant__ data%s", "");
	if (c->global_bytes > CUBIN_GLOBAL_MAX && DEFENCE("guard.module_state"))
		return refuse(code, text, "guard.module_state",
			      "more than 64 KiB of variables in device memory%s", "");
	return 0;
}

static int arg_bytes(const struct launch_arg *a)
{
	return a->kind == ARG_BUFFER ? 8 : a->kind == ARG_MAP ? 128 : a->n;
}

static int launch_args(const struct cubin *c, const struct launch *l, int at, char text[256])
{
	const struct cubin_entry *k = cubin_find(c, l->entry);
	if (!k)
		return snprintf(text, 256, "launch %d: the entry '%.64s' is not in the module", at,
				l->entry) > 0;
	if (k->nparams != l->nargs)
		return snprintf(text, 256, "launch %d: '%.64s' takes %d parameters, the plan gives %d", at,
				l->entry, k->nparams, l->nargs) > 0;
	for (int i = 0; i < l->nargs; i++)
		if ((int64_t)k->param[i].size != arg_bytes(&l->arg[i]))
			return snprintf(text, 256,
					"launch %d: parameter %d of '%.64s' has %u bytes, the plan gives %d",
					at, i, l->entry, k->param[i].size, arg_bytes(&l->arg[i])) > 0;
	for (int i = 0; i < 3; i++)
		if (k->cluster[0] && (int64_t)l->cluster[i] != k->cluster[i])
			return snprintf(text, 256,
					"launch %d: '%.64s' is compiled for clusters of %lldx%lldx%lld, the "
					"plan says "
					"%ux%ux%u",
					at, l->entry, (long long)k->cluster[0], (long long)k->cluster[1],
					(long long)k->cluster[2], l->cluster[0], l->cluster[1],
					l->cluster[2]) > 0;
	int64_t threads = (int64_t)l->block[0] * l->block[1] * l->block[2];
	if (k->max_threads && threads > k->max_threads)
		return snprintf(
			   text, 256,
			   "launch %d: '%.64s' is compiled for at most %lld threads, the plan launches %lld",
			   at, l->entry, (long long)k->max_threads, (long long)threads) > 0;
	return 0;
}

int cubin_args(const struct cubin *c, const struct launches *l, char text[256])
{
	for (int i = 0; i < l->n; i++)
		if (launch_args(c, &l->launch[i], i, text))
			return 1;
	return 0;
}

/* ---- occupancy ---- */

static int64_t round_up(int64_t n, int64_t to)
{
	return (n + to - 1) / to * to;
}

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* sm_80 to sm_120: registers come in 256 a warp from four equal files, shared memory in 128 bytes. */
static int occupancy(void *ctx, const char *entry, int64_t threads, int64_t shared, int64_t *blocks,
		     struct err *e)
{
	const struct cubin *c = ctx;
	const struct facts *f = &c->device;
	const struct cubin_entry *k = cubin_find(c, entry);
	if (!k)
		return facts_occupancy(f, entry, threads, shared, blocks, e);
	*blocks = 0;
	shared += k->shared;
	if (threads > f->max_threads || shared > f->max_shared ||
	    (k->max_threads && threads > k->max_threads))
		return 0;
	int64_t warps = (threads + f->warp_size - 1) / f->warp_size;
	int64_t n = least(f->max_blocks_sm, f->max_threads_sm / (warps * f->warp_size));
	n = least(n, f->max_shared_sm / round_up(shared + f->shared_reserved, 128));
	if (k->regs > 0 && f->max_registers_sm > 0) {
		int64_t warp_regs = round_up(k->regs * f->warp_size, 256);
		n = least(n, f->max_registers_sm / 4 / warp_regs * 4 / warps);
	}
	*blocks = n;
	return 0;
}

void cubin_facts(struct cubin *c, struct facts *f)
{
	c->device = *f;
	c->device.occupancy = NULL;
	c->device.occupancy_ctx = NULL;
	c->device.max_clusters = NULL;
	f->occupancy = occupancy;
	f->occupancy_ctx = c;
}

/* ---- JSON ---- */

cJSON *cubin_json(const struct cubin *c)
{
	cJSON *o = cJSON_CreateObject(), *entries = cJSON_AddArrayToObject(o, "entries");
	cJSON_AddNumberToObject(o, "sm", c->sm);
	for (int i = 0; i < c->nentries; i++) {
		const struct cubin_entry *k = &c->entry[i];
		cJSON *x = cJSON_CreateObject(), *params = cJSON_AddArrayToObject(x, "params");
		cJSON_AddStringToObject(x, "entry", k->entry[0] ? k->entry : k->name);
		cJSON_AddStringToObject(x, "symbol", k->name);
		cJSON_AddNumberToObject(x, "registers", (double)k->regs);
		cJSON_AddNumberToObject(x, "shared", (double)k->shared);
		cJSON_AddNumberToObject(x, "local", (double)k->local);
		cJSON_AddNumberToObject(x, "spill", (double)k->spill_bytes);
		cJSON_AddNumberToObject(x, "max_threads", (double)k->max_threads);
		for (int p = 0; p < k->nparams; p++)
			cJSON_AddItemToArray(params, cJSON_CreateNumber(k->param[p].size));
		cJSON_AddItemToArray(entries, x);
	}
	cJSON *globals = cJSON_AddArrayToObject(o, "globals");
	for (int i = 0; i < c->nglobals; i++) {
		cJSON *x = cJSON_CreateObject();
		cJSON_AddStringToObject(x, "name", c->global[i].name);
		cJSON_AddNumberToObject(x, "bytes", (double)c->global[i].bytes);
		cJSON_AddBoolToObject(x, "init", c->global[i].init);
		cJSON_AddBoolToObject(x, "local", c->global[i].local);
		cJSON_AddItemToArray(globals, x);
	}
	cJSON_AddBoolToObject(o, "reload", c->reload);
	cJSON_AddNumberToObject(o, "global_bytes", (double)c->global_bytes);
	cJSON_AddNumberToObject(o, "constant_bytes", (double)c->const_bytes);
	return o;
}
