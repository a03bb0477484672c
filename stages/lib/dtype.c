/*
 * dtype.c - element types of tensors. See dtype.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "dtype.h"

#include <math.h>
#include <string.h>

static const struct {
	enum dtype t;
	const char *name, *brief;
	uint8_t size, is_float, is_signed, mantissa;
} TYPES[] = {
	{DT_F64, "float64", "f64", 8, 1, 1, 53},
	{DT_F32, "float32", "f32", 4, 1, 1, 24},
	{DT_F16, "float16", "f16", 2, 1, 1, 11},
	{DT_BF16, "bfloat16", "bf16", 2, 1, 1, 8},
	{DT_E4M3, "float8_e4m3fn", "e4m3", 1, 1, 1, 4},
	{DT_E5M2, "float8_e5m2", "e5m2", 1, 1, 1, 3},
	{DT_I64, "int64", "i64", 8, 0, 1, 0},
	{DT_I32, "int32", "i32", 4, 0, 1, 0},
	{DT_I16, "int16", "i16", 2, 0, 1, 0},
	{DT_I8, "int8", "i8", 1, 0, 1, 0},
	{DT_U64, "uint64", "u64", 8, 0, 0, 0},
	{DT_U32, "uint32", "u32", 4, 0, 0, 0},
	{DT_U16, "uint16", "u16", 2, 0, 0, 0},
	{DT_U8, "uint8", "u8", 1, 0, 0, 0},
	{DT_BOOL, "bool", "b8", 1, 0, 0, 0},
};

#define N_TYPES (sizeof TYPES / sizeof TYPES[0])

enum dtype dtype_parse(const char *name)
{
	for (size_t i = 0; name && i < N_TYPES; i++)
		if (!strcmp(name, TYPES[i].name) || !strcmp(name, TYPES[i].brief))
			return TYPES[i].t;
	return DT_NONE;
}

const char *dtype_name(enum dtype t)
{
	return t > DT_NONE && t <= DT_BOOL ? TYPES[t - 1].name : "none";
}

size_t dtype_size(enum dtype t)
{
	return t > DT_NONE && t <= DT_BOOL ? TYPES[t - 1].size : 0;
}

int dtype_is_float(enum dtype t)
{
	return t > DT_NONE && t <= DT_BOOL ? TYPES[t - 1].is_float : 0;
}

int dtype_is_signed(enum dtype t)
{
	return t > DT_NONE && t <= DT_BOOL ? TYPES[t - 1].is_signed : 0;
}

int dtype_mantissa(enum dtype t)
{
	return t > DT_NONE && t <= DT_BOOL ? TYPES[t - 1].mantissa : 0;
}

static uint32_t bits_of(float f)
{
	uint32_t u;
	memcpy(&u, &f, sizeof u);
	return u;
}

static float float_of(uint32_t u)
{
	float f;
	memcpy(&f, &u, sizeof f);
	return f;
}

/* A small binary float: sign, e exponent bits, m mantissa bits, usual bias, subnormals. */
static float small_load(uint32_t v, int e, int m, int has_inf)
{
	int bias = (1 << (e - 1)) - 1;
	uint32_t exp = (v >> m) & ((1u << e) - 1), man = v & ((1u << m) - 1);
	float sign = (v >> (e + m)) & 1 ? -1.0f : 1.0f;

	if (exp == (1u << e) - 1 && has_inf)
		return man ? NAN : sign * INFINITY;
	if (exp == (1u << e) - 1 && man == (1u << m) - 1)
		return NAN;
	if (exp == 0)
		return sign * ldexpf((float)man, 1 - bias - m);
	return sign * ldexpf((float)(man | 1u << m), (int)exp - bias - m);
}

static uint32_t small_store(float f, int e, int m, int has_inf)
{
	int bias = (1 << (e - 1)) - 1;
	uint32_t sign = bits_of(f) >> 31 << (e + m);
	uint32_t top = ((1u << e) - 1) << m;
	uint32_t nan = has_inf ? top | 1u << (m - 1) : top | ((1u << m) - 1);
	uint32_t inf = has_inf ? top : nan;
	float a = fabsf(f);
	int x;

	if (isnan(f))
		return sign | nan;
	if (isinf(f))
		return sign | inf;
	if (a == 0)
		return sign;
	frexpf(a, &x); /* a = 0.1xxx * 2^x, so the leading bit weighs 2^(x-1) */
	int lead = x - 1 < 1 - bias ? 1 - bias : x - 1;
	/* Scaling by a power of two is exact here; rintf rounds to nearest even. */
	uint32_t q = (uint32_t)rintf(ldexpf(a, m - lead));
	uint32_t v = q + ((uint32_t)(lead + bias - 1) << m);
	if (q < 1u << m)
		v = q; /* subnormal */
	if (v >= (has_inf ? top : nan))
		return sign | inf;
	return sign | v;
}

float dtype_from_f16(uint16_t h)
{
	uint32_t sign = (uint32_t)(h & 0x8000) << 16, exp = (h >> 10) & 31, man = h & 1023;

	if (exp == 0 || exp == 31)
		return small_load(h, 5, 10, 1);
	return float_of(sign | (exp + 112) << 23 | man << 13);
}

float dtype_from_bf16(uint16_t h)
{
	return float_of((uint32_t)h << 16);
}

float dtype_from_e4m3(uint8_t b)
{
	return small_load(b, 4, 3, 0);
}

float dtype_from_e5m2(uint8_t b)
{
	return small_load(b, 5, 2, 1);
}

uint16_t dtype_to_f16(float f)
{
	return (uint16_t)small_store(f, 5, 10, 1);
}

uint16_t dtype_to_bf16(float f)
{
	uint32_t u = bits_of(f);

	if (isnan(f))
		return (uint16_t)(u >> 16 | 0x40);
	return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

uint8_t dtype_to_e4m3(float f)
{
	return (uint8_t)small_store(f, 4, 3, 0);
}

uint8_t dtype_to_e5m2(float f)
{
	return (uint8_t)small_store(f, 5, 2, 1);
}

#define AT(type) (((const type *)base)[i])

int64_t dtype_load_int(enum dtype t, const void *base, size_t i)
{
	switch (t) {
	case DT_I64: return AT(int64_t);
	case DT_I32: return AT(int32_t);
	case DT_I16: return AT(int16_t);
	case DT_I8: return AT(int8_t);
	case DT_U64: return (int64_t)AT(uint64_t);
	case DT_U32: return AT(uint32_t);
	case DT_U16: return AT(uint16_t);
	case DT_U8:
	case DT_BOOL: return AT(uint8_t);
	default: return 0;
	}
}

double dtype_load(enum dtype t, const void *base, size_t i)
{
	switch (t) {
	case DT_F64: return AT(double);
	case DT_F32: return (double)AT(float);
	case DT_F16: return (double)dtype_from_f16(AT(uint16_t));
	case DT_BF16: return (double)dtype_from_bf16(AT(uint16_t));
	case DT_E4M3: return (double)dtype_from_e4m3(AT(uint8_t));
	case DT_E5M2: return (double)dtype_from_e5m2(AT(uint8_t));
	case DT_U64: return (double)AT(uint64_t);
	default: return (double)dtype_load_int(t, base, i);
	}
}

static int64_t clamp_int(double v, double lo, double hi)
{
	if (!(v >= lo)) /* NaN too */
		return (int64_t)lo;
	return v >= hi ? (hi >= 0x1p63 ? INT64_MAX : (int64_t)hi) : (int64_t)v;
}

void dtype_store(enum dtype t, void *base, size_t i, double v)
{
	switch (t) {
	case DT_F64: ((double *)base)[i] = v; break;
	case DT_F32: ((float *)base)[i] = (float)v; break;
	case DT_F16: ((uint16_t *)base)[i] = dtype_to_f16((float)v); break;
	case DT_BF16: ((uint16_t *)base)[i] = dtype_to_bf16((float)v); break;
	case DT_E4M3: ((uint8_t *)base)[i] = dtype_to_e4m3((float)v); break;
	case DT_E5M2: ((uint8_t *)base)[i] = dtype_to_e5m2((float)v); break;
	case DT_I64: ((int64_t *)base)[i] = clamp_int(v, -0x1p63, 0x1p63); break;
	case DT_I32: ((int32_t *)base)[i] = (int32_t)clamp_int(v, INT32_MIN, INT32_MAX); break;
	case DT_I16: ((int16_t *)base)[i] = (int16_t)clamp_int(v, INT16_MIN, INT16_MAX); break;
	case DT_I8: ((int8_t *)base)[i] = (int8_t)clamp_int(v, INT8_MIN, INT8_MAX); break;
	case DT_U64: ((uint64_t *)base)[i] = v >= 0x1p64 ? UINT64_MAX : v > 0 ? (uint64_t)v : 0; break;
	case DT_U32: ((uint32_t *)base)[i] = (uint32_t)clamp_int(v, 0, UINT32_MAX); break;
	case DT_U16: ((uint16_t *)base)[i] = (uint16_t)clamp_int(v, 0, UINT16_MAX); break;
	case DT_U8: ((uint8_t *)base)[i] = (uint8_t)clamp_int(v, 0, UINT8_MAX); break;
	case DT_BOOL: ((uint8_t *)base)[i] = v != 0; break;
	default: break;
	}
}

double dtype_ulp(enum dtype t, double v)
{
	static const int MIN_EXP[] = {[DT_F64] = -1022, [DT_F32] = -126, [DT_F16] = -14,
				      [DT_BF16] = -126, [DT_E4M3] = -6, [DT_E5M2] = -14};
	int x;

	if (!dtype_is_float(t) || !isfinite(v))
		return 0;
	frexp(v, &x);
	if (v == 0 || x - 1 < MIN_EXP[t])
		x = MIN_EXP[t] + 1;
	return ldexp(1, x - dtype_mantissa(t));
}
