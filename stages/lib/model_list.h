/*
 * model_list.h - what an endpoint says at /models: {"data": [{"id": "vendor/name"}, ...]}.
 *
 * The text comes from a server. Names are made one clean line each.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_MODEL_LIST_H
#define TS_MODEL_LIST_H

#include "err.h"

#include <stddef.h>

#define MODEL_LIST_NAME 96

struct model_list {
	int n;                       /* models that have a name */
	int there;                   /* the one asked for is among them */
	char first[MODEL_LIST_NAME]; /* "" none */
};

/* `model` may be NULL. -1: no such list. */
int model_list_parse(const char *body, size_t len, const char *model, struct model_list *out, struct err *e);

#endif
