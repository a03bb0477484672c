/*
 * qwen3.c - see qwen3.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "qwen3.h"

#include "buf.h"
#include "file.h"
#include "json.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct json_limits CONFIG = {.bytes = 1 << 20, .depth = 8};

/* ---- config.json ---- */

static int dim(const cJSON *j, const char *key, int max, int *out, const char *what, struct err *e)
{
	int64_t v;
	if (json_int(j, key, &v, what, e))
		return -1;
	if (v < 1 || v > max)
		return err_set(e, EX_BADINPUT, "%s: %s must be 1 to %d", what, key, max);
	*out = (int)v;
	return 0;
}

/* A member that may be absent or null, and otherwise has to be `want`. */
static int must_be(const cJSON *j, const char *key, const char *want, const char *what, struct err *e)
{
	const cJSON *c = json_get(j, key);
	int ok = !c || (cJSON_IsString(c) && strcmp(c->valuestring, want) == 0) ||
		 (cJSON_IsFalse(c) && strcmp(want, "false") == 0);
	return ok ? 0 : err_set(e, EX_BADINPUT, "%s: %s is not %s: no model that this reference computes", what, key, want);
}

static int read_rope(const cJSON *j, struct qwen3_config *c, const char *what, struct err *e)
{
	const cJSON *p = json_get(j, "rope_parameters"), *old = json_get(j, "rope_scaling");
	double top = json_get_num(j, "rope_theta", 0), in = p ? json_get_num(p, "rope_theta", 0) : 0;
	const cJSON *const said[] = {old, p};
	for (int i = 0; i < 2; i++)
		if (said[i] && (must_be(said[i], "rope_type", "default", what, e) ||
				must_be(said[i], "type", "default", what, e)))
			return -1;
	if (top != 0 && in != 0 && top != in)
		return err_set(e, EX_BADINPUT, "%s: rope_theta is there twice and differs", what);
	c->rope_theta = top != 0 ? top : in;
	if (!(c->rope_theta > 1 && c->rope_theta < 1e12))
		return err_set(e, EX_BADINPUT, "%s: no rope_theta, at the top or in rope_parameters", what);
	return 0;
}

static int read_layers(const cJSON *j, const struct qwen3_config *c, const char *what, struct err *e)
{
	const cJSON *types = json_get(j, "layer_types"), *t;
	if (must_be(j, "use_sliding_window", "false", what, e))
		return -1;
	if (types && cJSON_GetArraySize(types) != c->layers)
		return err_set(e, EX_BADINPUT, "%s: layer_types has not one entry a layer", what);
	cJSON_ArrayForEach(t, types)
		if (!cJSON_IsString(t) || strcmp(t->valuestring, "full_attention") != 0)
			return err_set(e, EX_BADINPUT, "%s: layer_types holds another kind than full_attention", what);
	return 0;
}

static int read_config(const cJSON *j, struct qwen3_config *c, const char *what, struct err *e)
{
	const cJSON *tie = json_get(j, "tie_word_embeddings");
	const char *type = json_str(j, "model_type", what, e);
	if (!type)
		return -1;
	if (strcmp(type, "qwen3") != 0)
		return err_set(e, EX_BADINPUT, "%s: model_type is '%.40s', not qwen3", what, type);
	if (dim(j, "hidden_size", 1 << 16, &c->hidden, what, e) || dim(j, "num_hidden_layers", 256, &c->layers, what, e) ||
	    dim(j, "num_attention_heads", 512, &c->heads, what, e) ||
	    dim(j, "num_key_value_heads", 512, &c->kv_heads, what, e) || dim(j, "head_dim", 512, &c->head_dim, what, e) ||
	    dim(j, "intermediate_size", 1 << 18, &c->intermediate, what, e) ||
	    dim(j, "vocab_size", 1 << 20, &c->vocab, what, e) ||
	    dim(j, "max_position_embeddings", 1 << 24, &c->max_positions, what, e) ||
	    json_num(j, "rms_norm_eps", &c->eps, what, e))
		return -1;
	if (c->heads % c->kv_heads || c->head_dim % 2)
		return err_set(e, EX_BADINPUT, "%s: heads do not divide: %d by %d, of %d", what, c->heads, c->kv_heads,
			       c->head_dim);
	if (!(c->eps > 0 && c->eps < 1))
		return err_set(e, EX_BADINPUT, "%s: rms_norm_eps must be between 0 and 1", what);
	if (tie && !cJSON_IsBool(tie))
		return err_set(e, EX_BADINPUT, "%s: tie_word_embeddings is not true or false", what);
	c->tied = cJSON_IsTrue(tie);
	if (!json_get(j, "torch_dtype") && !json_get(j, "dtype"))
		return err_set(e, EX_BADINPUT, "%s: neither torch_dtype nor dtype", what);
	if (must_be(j, "torch_dtype", "bfloat16", what, e) || must_be(j, "dtype", "bfloat16", what, e) ||
	    must_be(j, "hidden_act", "silu", what, e) || must_be(j, "attention_bias", "false", what, e))
		return -1;
	return read_rope(j, c, what, e) || read_layers(j, c, what, e) ? -1 : 0;
}

int qwen3_config_parse(const char *text, size_t len, const char *what, struct qwen3_config *c, struct err *e)
{
	*c = (struct qwen3_config){0};
	cJSON *j = json_parse(text, len, &CONFIG, what, e);
	int rc = j ? read_config(j, c, what, e) : -1;
	cJSON_Delete(j);
	return rc;
}

/* ---- tensors ---- */

enum { PER_LAYER = 11 };

static int layer_tensor(const struct qwen3_config *c, int k, const char **name, int64_t shape[2])
{
	const int64_t h = c->hidden, q = (int64_t)c->heads * c->head_dim, kv = (int64_t)c->kv_heads * c->head_dim,
		      m = c->intermediate;
	const struct {
		const char *name;
		int64_t out, in;
	} T[PER_LAYER] = {
		{"input_layernorm", h, 0}, {"self_attn.q_proj", q, h}, {"self_attn.k_proj", kv, h},
		{"self_attn.v_proj", kv, h}, {"self_attn.q_norm", c->head_dim, 0},
		{"self_attn.k_norm", c->head_dim, 0}, {"self_attn.o_proj", h, q},
		{"post_attention_layernorm", h, 0}, {"mlp.gate_proj", m, h}, {"mlp.up_proj", m, h},
		{"mlp.down_proj", h, m},
	};
	*name = T[k].name;
	shape[0] = T[k].out;
	shape[1] = T[k].in;
	return T[k].in ? 2 : 1;
}

int qwen3_tensor(const struct qwen3_config *c, int i, char *name, int64_t shape[2], int *rank)
{
	const char *part;
	const int layers = c->layers * PER_LAYER;
	shape[0] = c->vocab;
	shape[1] = c->hidden;
	*rank = 2;
	if (i == 0)
		snprintf(name, QWEN3_NAME, "model.embed_tokens.weight");
	else if (i <= layers) {
		*rank = layer_tensor(c, (i - 1) % PER_LAYER, &part, shape);
		snprintf(name, QWEN3_NAME, "model.layers.%d.%s.weight", (i - 1) / PER_LAYER, part);
	} else if (i == layers + 1) {
		snprintf(name, QWEN3_NAME, "model.norm.weight");
		shape[0] = c->hidden;
		*rank = 1;
	} else if (i == layers + 2 && !c->tied)
		snprintf(name, QWEN3_NAME, "lm_head.weight");
	else
		return 0;
	return 1;
}

static uint64_t count(const struct qwen3_config *c, int from)
{
	char name[QWEN3_NAME];
	int64_t shape[2];
	int rank;
	uint64_t n = 0;
	for (int i = from; qwen3_tensor(c, i, name, shape, &rank); i++)
		n += (uint64_t)shape[0] * (rank == 2 ? (uint64_t)shape[1] : 1);
	return n;
}

uint64_t qwen3_parameters(const struct qwen3_config *c)
{
	return count(c, 0);
}

uint64_t qwen3_step_bytes(const struct qwen3_config *c)
{
	return 2 * count(c, c->tied ? 0 : 1);
}

/* ---- a folder ---- */

static const uint16_t **slot(struct qwen3 *m, int i)
{
	const int layers = m->c.layers * PER_LAYER;
	if (i == 0)
		return &m->embed;
	if (i > layers)
		return i == layers + 1 ? &m->norm : &m->head;
	struct qwen3_layer *l = &m->layer[(i - 1) / PER_LAYER];
	const uint16_t **const part[PER_LAYER] = {&l->input_norm, &l->q, &l->k, &l->v, &l->q_norm, &l->k_norm,
						  &l->o, &l->post_norm, &l->gate, &l->up, &l->down};
	return part[(i - 1) % PER_LAYER];
}

static int bind(struct qwen3 *m, const char *dir, struct err *e)
{
	char name[QWEN3_NAME];
	int64_t shape[2];
	int rank, n = 0;
	for (; qwen3_tensor(&m->c, n, name, shape, &rank); n++) {
		const struct safetensor *t = safetensors_find(&m->st, name);
		if (!t)
			return err_set(e, EX_BADINPUT, "'%s': no tensor '%s'", dir, name);
		if (t->dtype != DT_BF16)
			return err_set(e, EX_BADINPUT, "'%s': '%s' is %s, not bfloat16", dir, name, dtype_name(t->dtype));
		if (t->rank != rank || t->shape[0] != shape[0] || (rank == 2 && t->shape[1] != shape[1]))
			return err_set(e, EX_BADINPUT, "'%s': '%s' has not the shape that config.json says", dir, name);
		if ((uintptr_t)t->data % 2)
			return err_set(e, EX_BADINPUT, "'%s': '%s' lies at an odd address", dir, name);
		*slot(m, n) = t->data;
	}
	int stray = m->c.tied && safetensors_find(&m->st, "lm_head.weight") != NULL;
	if (m->st.n != (size_t)(n + stray))
		for (size_t i = 0; i < m->st.n; i++) {
			int known = 0;
			for (int k = 0; !known && qwen3_tensor(&m->c, k, name, shape, &rank); k++)
				known = strcmp(m->st.t[i].name, name) == 0;
			if (!known && strcmp(m->st.t[i].name, "lm_head.weight") != 0)
				return err_set(e, EX_BADINPUT, "'%s': '%.80s' is no tensor of a dense Qwen3", dir,
					       m->st.t[i].name);
		}
	if (m->c.tied)
		m->head = m->embed;
	return 0;
}

int qwen3_open(struct qwen3 *m, const char *dir, struct err *e)
{
	struct buf text = BUF_INIT;
	char *path = xasprintf("%s/config.json", dir);
	char *real = realpath(path, NULL); /* a download cache holds links */
	*m = (struct qwen3){0};
	int rc = file_read(real ? real : path, CONFIG.bytes, &text, e);
	free(real);
	if (rc == 0)
		rc = qwen3_config_parse(buf_str(&text), text.len, path, &m->c, e);
	if (rc == 0)
		rc = safetensors_open(&m->st, dir, e);
	if (rc == 0) {
		m->layer = xcalloc((size_t)m->c.layers, sizeof *m->layer);
		rc = bind(m, dir, e);
	}
	if (rc)
		qwen3_close(m);
	buf_free(&text);
	free(path);
	return rc;
}

void qwen3_close(struct qwen3 *m)
{
	safetensors_close(&m->st);
	free(m->layer);
	*m = (struct qwen3){0};
}
