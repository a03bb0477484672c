/*
 * hostref.h - a second opinion on the reference: a few operations in float64 on the host.
 *
 * Used by `make check` only: written from the definition, in another style and by another
 * compiler path than reference.cu, so that a slip in one shows. Knows gemm, softmax, transpose
 * and, by their names, the shipped elementwise and normalisation specs.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_HOSTREF_H
#define TS_HOSTREF_H

#include "spec.h"

/* in[i]: payload of input i (NULL for scalars); scalar[i] its value. out: float64, first output.
 * 1 done, 0 this operation is not known. */
int hostref_run(const struct spec *s, const struct axes *a, const void *const *in,
		const double *scalar, double *out);

#endif
