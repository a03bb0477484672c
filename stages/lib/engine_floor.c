/*
 * engine_floor.c - see engine_floor.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "engine_floor.h"

#include <math.h>
#include <string.h>

enum { CACHES = 4 }; /* weights of so many times the L2 do not stay there */

struct engine_ceilings engine_ceilings_of(const struct gpu *g)
{
	const struct worker_ceilings *m = g ? &g->ceilings : NULL;
	const double gbs = m ? fmax(m->copy_gbs, fmax(m->read_gbs, m->write_gbs)) : 0;
	if (m && gbs > 0 && m->bf16_tflops > 0)
		return (struct engine_ceilings){gbs * 1e9, m->bf16_tflops * 1e12, "measured"};
	if (g && strstr(g->facts.name, "H200"))
		return (struct engine_ceilings){4.8e12, 790e12, "data sheet"};
	return (struct engine_ceilings){0, 0, "none"};
}

/* Weights of all layers that are multiplied with: norms are next to nothing. */
static double layer_weights(const struct qwen3_config *c)
{
	const double q = (double)c->heads * c->head_dim, kv = (double)c->kv_heads * c->head_dim;
	return c->layers * (c->hidden * (2 * q + 2 * kv) + 3.0 * c->hidden * c->intermediate);
}

static double kv_bytes(const struct qwen3_config *c)
{
	return 2.0 * 2 * c->layers * c->kv_heads * c->head_dim; /* of a token: keys and values, two bytes each */
}

static double longer(const struct engine_ceilings *k, double bytes, double flops)
{
	return fmax(bytes / k->bytes_s, flops / k->flops_s);
}

struct engine_floor engine_floor_of(const struct qwen3_config *c, const struct engine_ceilings *k, int64_t l2, int batch,
				    int prompt, int steps)
{
	struct engine_floor f = {0};
	const double b = batch, p = prompt, weights = layer_weights(c), head = (double)c->vocab * c->hidden;
	const double read = 2 * (weights + head), each = 2.0 * c->heads * c->head_dim * c->layers; /* attention, of a pair of positions */
	double decode = 0;
	if (!(k->bytes_s > 0) || !(k->flops_s > 0))
		return f;
	f.prefill_s = longer(k, read, 2 * weights * b * p + each * p * p * b + 2 * head * b);
	for (int t = 1; t < steps; t++) {
		const double length = p + t;
		decode += longer(k, read + kv_bytes(c) * b * length, 2 * (weights + head) * b + 2 * each * length * b);
	}
	f.step_s = steps > 1 ? decode / (steps - 1) : 0;
	f.total_s = f.prefill_s + decode;
	f.binds = read > CACHES * (double)l2;
	return f;
}
