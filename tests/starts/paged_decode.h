/* The tensor core's fragments in plain C, as the PTX manual draws them: lane l, g = l / 4, t = l % 4. */
__device__ static void load_matrices(u32 (&r)[4], const void *row)
{
	int lane = threadIdx.x % 32;
	for (int i = 0; i < 4; i++) {
		unsigned long long at = __shfl_sync(0xffffffffu, (unsigned long long)row, i * 8 + lane / 4);
		r[i] = ((const u32 *)at)[lane % 4];
	}
	__syncwarp();
}

/* The element at row 2t and 2t + 1, column g. */
__device__ static void load_transposed(u32 (&r)[4], const void *row)
{
	int lane = threadIdx.x % 32;
	for (int i = 0; i < 4; i++) {
		unsigned long long a = __shfl_sync(0xffffffffu, (unsigned long long)row, i * 8 + lane % 4 * 2);
		unsigned long long b = __shfl_sync(0xffffffffu, (unsigned long long)row, i * 8 + lane % 4 * 2 + 1);
		r[i] = ((const bf16 *)a)[lane / 4] | (u32)((const bf16 *)b)[lane / 4] << 16;
	}
	__syncwarp();
}

__device__ static float half_of(u32 v, int which)
{
	return __uint_as_float(which ? v & 0xffff0000u : v << 16);
}

/* a: register r of lane l holds row g + 8 * (r % 2), k = 2t + 8 * (r / 2) and the next; b: column g, k = 2t + 8r. */
__device__ static void multiply(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1)
{
	int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
	for (int j = 0; j < 8; j++) {
		int from = j % 4, up = j / 4;
		u32 a0 = __shfl_sync(0xffffffffu, a[2 * up], g * 4 + from);
		u32 a1 = __shfl_sync(0xffffffffu, a[2 * up + 1], g * 4 + from);
		u32 x = __shfl_sync(0xffffffffu, up ? b1 : b0, 2 * t * 4 + from);
		u32 y = __shfl_sync(0xffffffffu, up ? b1 : b0, (2 * t + 1) * 4 + from);
		for (int h = 0; h < 2; h++) {
			c[0] += half_of(a0, h) * half_of(x, h);
			c[1] += half_of(a0, h) * half_of(y, h);
			c[2] += half_of(a1, h) * half_of(x, h);
			c[3] += half_of(a1, h) * half_of(y, h);
		}
	}
}

__device__ static u32 round_pair(float low, float high)
{
	u32 a = __float_as_uint(low), b = __float_as_uint(high);
	a += 0x7fff + (a >> 16 & 1);
	b += 0x7fff + (b >> 16 & 1);
	return a >> 16 | (b & 0xffff0000u);
}

__device__ static float power_of_two(float x)
{
	return exp2f(x);
}
