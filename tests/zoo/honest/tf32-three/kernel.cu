/* v = big + small, both TF32; big * big + big * small + small * big on tensor cores. A warp a 16 x 8 tile. */
__device__ static void cut(float v, unsigned &big, unsigned &small)
{
	asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(big) : "f"(v));
	asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(small) : "f"(v - __uint_as_float(big)));
}

__device__ static void multiply(float d[4], const unsigned a[4], const unsigned b[2])
{
	asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
		: "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
		: "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

extern "C" __global__ void __launch_bounds__(32) gemm_tf32(const float *a, const float *b, float *c, int m, int n, int k)
{
	int g = threadIdx.x / 4, t = threadIdx.x % 4, row = blockIdx.y * 16, col = blockIdx.x * 8;
	float sum[4] = {}, rest[4] = {};

	for (int k0 = 0; k0 < k; k0 += 8) {
		unsigned ab[4], as[4], bb[2], bs[2];
		for (int i = 0; i < 4; i++) {
			int r = row + g + i % 2 * 8, q = k0 + t + i / 2 * 4;
			cut(r < m && q < k ? a[(long long)r * k + q] : 0.0f, ab[i], as[i]);
		}
		for (int i = 0; i < 2; i++) {
			int q = k0 + t + i * 4, s = col + g;
			cut(q < k && s < n ? b[(long long)q * n + s] : 0.0f, bb[i], bs[i]);
		}
		float part[4] = {};
		multiply(rest, as, bb);
		multiply(rest, ab, bs);
		multiply(part, ab, bb);
		for (int i = 0; i < 4; i++)
			sum[i] += part[i]; /* tensor cores cut off where they add: short sums there */
	}
	for (int i = 0; i < 4; i++) {
		int r = row + g + i / 2 * 8, s = col + 2 * t + i % 2;
		if (r < m && s < n)
			c[(long long)r * n + s] = sum[i] + rest[i];
	}
}
