/* A block of one warp, 16 x 16 results; tiles of 16 x 16 go through shared memory. N and K are multiples of 8. */
#include <cuda_bf16.h>

__device__ static void put(__nv_bfloat16 (*tile)[24], const __nv_bfloat16 *x, int rows, int cols, int r0, int c0)
{
	int r = threadIdx.x / 2, c = threadIdx.x % 2 * 8;
	uint4 v = make_uint4(0, 0, 0, 0);
	if (r0 + r < rows && c0 + c < cols)
		v = *(const uint4 *)(x + (long long)(r0 + r) * cols + c0 + c);
	*(uint4 *)&tile[r][c] = v;
}

extern "C" __global__ void __launch_bounds__(32)
gemm_mma(const __nv_bfloat16 *a, const __nv_bfloat16 *b, __nv_bfloat16 *c, int m, int n, int k)
{
	__shared__ __align__(16) __nv_bfloat16 as[16][24], bs[16][24]; /* 48-byte rows: no conflicts of banks */
	int lane = threadIdx.x, row = blockIdx.y * 16, col = blockIdx.x * 16;
	unsigned pa = (unsigned)__cvta_generic_to_shared(&as[lane % 16][lane / 16 * 8]);
	unsigned pb = (unsigned)__cvta_generic_to_shared(&bs[lane % 16][lane / 16 * 8]);
	float d[2][4] = {};

	for (int k0 = 0; k0 < k; k0 += 16) {
		unsigned fa[4], fb[4];
		__syncwarp();
		put(as, a, m, k, row, k0);
		put(bs, b, k, n, k0, col);
		__syncwarp();
		asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
			: "=r"(fa[0]), "=r"(fa[1]), "=r"(fa[2]), "=r"(fa[3]) : "r"(pa) : "memory");
		asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
			: "=r"(fb[0]), "=r"(fb[1]), "=r"(fb[2]), "=r"(fb[3]) : "r"(pb) : "memory");
		for (int h = 0; h < 2; h++)
			asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
				: "+f"(d[h][0]), "+f"(d[h][1]), "+f"(d[h][2]), "+f"(d[h][3])
				: "r"(fa[0]), "r"(fa[1]), "r"(fa[2]), "r"(fa[3]), "r"(fb[2 * h]), "r"(fb[2 * h + 1]));
	}
	for (int h = 0; h < 2; h++)
		for (int i = 0; i < 2; i++) {
			int r = row + lane / 4 + 8 * i, s = col + 8 * h + lane % 4 * 2;
			if (r < m && s < n)
				*(__nv_bfloat162 *)(c + (long long)r * n + s) = __floats2bfloat162_rn(d[h][2 * i], d[h][2 * i + 1]);
		}
}
