// launch: modes grid=16 block=256 args=o
// launch: conversions grid=1 block=1 args=o
// Arithmetic with a stated rounding brackets the exact value; conversions saturate.

static __device__ void expect(unsigned *o, bool ok, unsigned where)
{
	atomicAdd(&o[1], 1u);
	if (!ok && atomicAdd(&o[0], 1u) == 0)
		o[2] = where;
}
__device__ float up(float x) { return nextafterf(x, INFINITY); }

__global__ void modes(unsigned *o)
{
	unsigned id = blockIdx.x * 256 + threadIdx.x, r = id * 2654435761u;
	float a = __uint_as_float((r & 0x807fffffu) | (100u + (r >> 24 & 31u)) << 23);
	float b = __uint_as_float((r * 77u & 0x807fffffu) | (104u + (r >> 16 & 15u)) << 23);
	double s = (double)a + b, p = (double)a * b; /* both exact: the exponents are close */
	expect(o, __fadd_rd(a, b) <= s && s <= __fadd_ru(a, b), 1);
	expect(o, __fadd_rd(a, b) == __fadd_ru(a, b) || up(__fadd_rd(a, b)) == __fadd_ru(a, b), 2);
	expect(o, fabs((double)__fadd_rz(a, b)) <= fabs(s) && __fadd_rn(a, b) == a + b, 3);
	expect(o, __fmul_rd(a, b) <= p && p <= __fmul_ru(a, b), 4);
	expect(o, (double)__fmul_rn(a, b) == p || up(__fmul_rd(a, b)) == __fmul_ru(a, b), 5);
	double q = (double)a / b, h = sqrt(fabs((double)a));
	expect(o, __fdiv_rd(a, b) <= q && q <= __fdiv_ru(a, b) && up(__fdiv_rd(a, b)) >= __fdiv_ru(a, b), 6);
	float m = fabsf(a);
	expect(o, __fsqrt_rd(m) <= h && h <= __fsqrt_ru(m) && up(__fsqrt_rd(m)) >= __fsqrt_ru(m), 7);
	double f = p + 0.5; /* rounded, but far closer than a float */
	expect(o, __fmaf_rd(a, b, 0.5f) <= f && f <= __fmaf_ru(a, b, 0.5f), 8);
	expect(o, __fmaf_rn(a, b, 0.5f) == fmaf(a, b, 0.5f) && fmaf(a, b, 0.5f) == (float)f, 9);
	expect(o, __fma_rn((double)a, (double)b, 0.5) == fma((double)a, (double)b, 0.5), 10);
	expect(o, __frcp_rd(b) <= 1.0 / b && 1.0 / b <= __frcp_ru(b) && __frcp_rn(b) == 1.0f / b, 11);
	expect(o, __fsub_rd(a, b) <= (double)a - b && __fsub_ru(a, b) >= (double)a - b, 12);
}

__global__ void conversions(unsigned *o)
{
	expect(o, __float2int_rn(2.5f) == 2 && __float2int_rn(3.5f) == 4 && __float2int_rz(-2.7f) == -2, 20);
	expect(o, __float2int_ru(2.1f) == 3 && __float2int_rd(-2.1f) == -3, 21);
	expect(o, __float2int_rz(1e20f) == INT32_MAX && __float2int_rz(-1e20f) == INT32_MIN && __float2int_rn(NAN) == 0, 22);
	expect(o, __float2uint_rz(-5.0f) == 0u && __float2uint_rz(5e9f) == ~0u && __float2uint_rn(3e9f) == 3000000000u, 23);
	expect(o, __double2ll_rz(-1e300) == INT64_MIN && __double2ull_rz(1.5e19) == 15000000000000000000ull, 24);
	expect(o, __int2float_rn(16777217) == 16777216.0f && __int2float_ru(16777217) == 16777218.0f, 25);
	expect(o, __double2float_rd(0.1) < 0.1 && __double2float_ru(0.1) > 0.1, 26);
	expect(o, __saturatef(1.5f) == 1.0f && __saturatef(-1.0f) == 0.0f && __saturatef(NAN) == 0.0f, 27);
}
