/*
 * dtype.h - element types of tensors: sizes, names, and conversions to and from double.
 *
 * Conversions to a narrower float round to nearest even, keep NaN a NaN and overflow to
 * infinity (fp8 e4m3 has no infinity: it saturates to NaN, as the hardware conversion without
 * saturation does). Loads never trap and never change the payload's meaning: a NaN stays NaN.
 * Files using this header are compiled without any fast-math flag; ieee.h proves it at start.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_DTYPE_H
#define TS_DTYPE_H

#include <stddef.h>
#include <stdint.h>

enum dtype {
	DT_NONE = 0,
	DT_F64,
	DT_F32,
	DT_F16,
	DT_BF16,
	DT_E4M3, /* float8_e4m3fn */
	DT_E5M2, /* float8_e5m2 */
	DT_I64,
	DT_I32,
	DT_I16,
	DT_I8,
	DT_U64,
	DT_U32,
	DT_U16,
	DT_U8,
	DT_BOOL, /* one byte, 0 or 1 */
};

/* FlashInfer-Bench spelling: "float32", "bfloat16", "float8_e4m3fn", "int32", "bool"...
 * Short forms of plan args ("f32", "i32", "u8", "bf16"...) are accepted too. DT_NONE if unknown. */
enum dtype dtype_parse(const char *name);
const char *dtype_name(enum dtype t); /* the long spelling */
size_t dtype_size(enum dtype t);      /* bytes of an element; 0 for DT_NONE */
int dtype_is_float(enum dtype t);
int dtype_is_signed(enum dtype t); /* of the integers */
int dtype_mantissa(enum dtype t);  /* significant bits including the hidden one; 0 for integers */

float dtype_from_f16(uint16_t h);
float dtype_from_bf16(uint16_t h);
float dtype_from_e4m3(uint8_t b);
float dtype_from_e5m2(uint8_t b);
uint16_t dtype_to_f16(float f);
uint16_t dtype_to_bf16(float f);
uint8_t dtype_to_e4m3(float f);
uint8_t dtype_to_e5m2(float f);

/* Element i of a buffer of type t. Integers beyond 2^53 lose bits: compare those natively. */
double dtype_load(enum dtype t, const void *base, size_t i);
void dtype_store(enum dtype t, void *base, size_t i, double v); /* integers: truncated, clamped */
int64_t dtype_load_int(enum dtype t, const void *base, size_t i); /* integer types only */

/* Distance between v (rounded to t) and the next larger magnitude in t; 0 for integers. */
double dtype_ulp(enum dtype t, double v);

#endif
