/*
 * spec_parse.h - shared by the files that read spec.json. Private to them.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_SPEC_PARSE_H
#define TS_SPEC_PARSE_H

#include "jwalk.h"
#include "spec.h"

/* The fill of an input; `item` may be NULL (the default for its type). */
int spec_parse_fill(struct jwalk *w, const cJSON *item, struct spec_tensor *t);
/* The comparator of an output; `item` may be NULL. Names are resolved against s. */
int spec_parse_compare(struct jwalk *w, const cJSON *item, const struct spec *s, struct spec_tensor *t);
int spec_parse_workloads(struct jwalk *w, const cJSON *item, struct spec *s);
/* Const axes at their values, the others 0. */
void spec_consts(const struct spec *s, struct axes *a);
/* Every name in x is an axis; no occupancy(). NULL is fine. */
int spec_check_names(struct jwalk *w, const struct spec *s, const struct expr *x);

#endif
