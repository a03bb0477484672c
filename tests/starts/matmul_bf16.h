/* gemm_part in plain C: one thread a result, all else as the real one. */
__device__ static u32 round_pair(float low, float high)
{
	u32 a = __float_as_uint(low), b = __float_as_uint(high);
	a += 0x7fff + (a >> 16 & 1);
	b += 0x7fff + (b >> 16 & 1);
	return a >> 16 | (b & 0xffff0000u);
}

__device__ static float wide(bf16 v)
{
	return __uint_as_float((u32)v << 16);
}

extern "C" __global__ void __launch_bounds__(256)
gemm_part(const bf16 *a, const bf16 *b, float *part, int m, int n, int k, int per, int pitch, int pitch_a)
{
	int c = blockIdx.x * 256 + threadIdx.x, r = blockIdx.y, from = blockIdx.z * per * BK;
	float s = 0.0f;

	if (c >= n)
		return;
	for (int q = from; q < k && q < from + per * BK; q++)
		s += wide(a[(long long)r * pitch_a + q]) * wide(b[(long long)q * pitch + c]);
	part[((long long)blockIdx.z * m + r) * pitch + c] = s;
}
