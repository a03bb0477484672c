/*
 * ieee.h - does floating point in this process follow IEEE 754, as every comparison here assumes?
 *
 * Asked at the start of each stage, of the checker and of the self-test; costs well below a
 * microsecond. What it finds out by doing, not by macros: comparisons and tests of a NaN, infinities,
 * denormals as operands and as results (a library linked with -ffast-math makes them zero for the
 * whole process), rounding to nearest, no sums put in another order, no quotient by a reciprocal, no
 * sign of zero lost, no product kept longer than its type (x87, contraction).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_IEEE_H
#define TS_IEEE_H

/* NULL: it does. Else what does not hold, in words. */
const char *ieee_broken(void);

#endif
