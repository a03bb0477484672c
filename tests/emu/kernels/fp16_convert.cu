// launch: halves grid=16 block=256 args=o
// launch: floats grid=64 block=256 args=o
// Every fp16 value and many floats near every tie, against a slow independent conversion.

#include <cuda_fp16.h>
#include <cuda_bf16.h>

static __device__ void expect(unsigned *o, bool ok, unsigned where)
{
	atomicAdd(&o[1], 1u);
	if (!ok && atomicAdd(&o[0], 1u) == 0)
		o[2] = where;
}
/* from the definition: sign, exponent, fraction */
__device__ double slow_value(unsigned h, int exponent_bits, int fraction_bits)
{
	int bias = (1 << (exponent_bits - 1)) - 1;
	int e = (int)(h >> fraction_bits) & ((1 << exponent_bits) - 1);
	double f = (double)(h & ((1u << fraction_bits) - 1u));
	double v = e ? ldexp(ldexp(1.0, fraction_bits) + f, e - bias - fraction_bits)
	             : ldexp(f, 1 - bias - fraction_bits);
	return h >> 15 & 1 ? -v : v;
}

/* the nearest by comparing distances with both neighbours, ties to the even pattern */
__device__ unsigned slow_round(double x, int eb, int fb)
{
	unsigned sign = x < 0 ? 0x8000u : 0u, lo = 0, hi = ((1u << eb) - 1u) << fb;
	double a = x < 0 ? -x : x;
	while (hi - lo > 1) {
		unsigned mid = (lo + hi) / 2;
		if (slow_value(mid, eb, fb) <= a)
			lo = mid;
		else
			hi = mid;
	}
	double below = a - slow_value(lo, eb, fb), above = slow_value(hi, eb, fb) - a;
	return sign | (below < above || (below == above && !(lo & 1u)) ? lo : hi);
}

__global__ void halves(unsigned *o)
{
	for (unsigned h = blockIdx.x * 256 + threadIdx.x; h < 65536; h += 4096) {
		float f = __half2float(__ushort_as_half((unsigned short)h));
		float g = __bfloat162float(__ushort_as_bfloat16((unsigned short)h));
		if ((h & 0x7c00u) == 0x7c00u)
			expect(o, (h & 0x3ffu) ? isnan(f) : isinf(f) && signbit(f) == (h >> 15), 1);
		else
			expect(o, (double)f == slow_value(h, 5, 10) && signbit(f) == (h >> 15), 2);
		expect(o, isnan(f) || __half_as_ushort(__float2half(f)) == h, 3);
		expect(o, __float_as_uint(g) == h << 16, 4);
		expect(o, isnan(g) || __bfloat16_as_ushort(__float2bfloat16(g)) == h, 5);
	}
}

__global__ void floats(unsigned *o)
{
	unsigned id = blockIdx.x * 256 + threadIdx.x;
	for (unsigned k = 0; k < 12; k++) {
		unsigned r = (id * 12 + k) * 2654435761u;
		/* half the cases lie at or beside a tie of fp16 or bf16 */
		unsigned w = k & 1 ? r : (r & 0xffffe000u) + 0x1000u + (k >> 1) % 3 - 1u;
		if (k >= 8)
			w = (r & 0xffff0000u) + 0x8000u + k % 3 - 1u;
		if (k & 2) /* into the range of fp16 */
			w = (w & 0x83ffffffu) | 0x34000000u + ((w & 0x0c000000u) >> 1);
		float f = __uint_as_float(w);
		if (isnan(f)) {
			expect(o, __half_as_ushort(__float2half(f)) == 0x7fffu, 6);
			continue;
		}
		if (isinf(f))
			continue;
		unsigned h = __half_as_ushort(__float2half_rn(f)), b = __bfloat16_as_ushort(__float2bfloat16_rn(f));
		expect(o, h == (f == 0 ? w >> 16 & 0x8000u : slow_round(f, 5, 10)), 7);
		expect(o, b == (f == 0 ? w >> 16 & 0x8000u : slow_round(f, 8, 7)), 8);
		double z = (double)__half2float(__float2half_rz(f));
		double u = (double)__half2float(__float2half_ru(f));
		double d = (double)__half2float(__float2half_rd(f));
		expect(o, (f < 0 ? z >= f : z <= f) && u >= f && d <= f, 9);
		expect(o, u == d ? u == f : (h == __half_as_ushort(__float2half_ru(f)) || h == __half_as_ushort(__float2half_rd(f))), 10);
	}
}
