/* nvcuda::wmma on 16 x 16 tiles that are padded with zeros in shared memory. */
#include <cuda_bf16.h>
#include <mma.h>

using namespace nvcuda;

extern "C" __global__ void __launch_bounds__(32)
gemm_wmma(const __nv_bfloat16 *a, const __nv_bfloat16 *b, __nv_bfloat16 *c, int m, int n, int k)
{
	__shared__ __align__(32) __nv_bfloat16 as[256], bs[256];
	__shared__ __align__(32) float cs[256];
	wmma::fragment<wmma::matrix_a, 16, 16, 16, __nv_bfloat16, wmma::row_major> fa;
	wmma::fragment<wmma::matrix_b, 16, 16, 16, __nv_bfloat16, wmma::row_major> fb;
	wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
	int row = blockIdx.y * 16, col = blockIdx.x * 16;
	__nv_bfloat16 zero = __float2bfloat16(0.0f);

	wmma::fill_fragment(fc, 0.0f);
	for (int k0 = 0; k0 < k; k0 += 16) {
		__syncwarp();
		for (int i = threadIdx.x; i < 256; i += 32) {
			int r = i / 16, s = i % 16;
			as[i] = row + r < m && k0 + s < k ? a[(long long)(row + r) * k + k0 + s] : zero;
			bs[i] = k0 + r < k && col + s < n ? b[(long long)(k0 + r) * n + col + s] : zero;
		}
		__syncwarp();
		wmma::load_matrix_sync(fa, as, 16);
		wmma::load_matrix_sync(fb, bs, 16);
		wmma::mma_sync(fc, fa, fb, fc);
	}
	wmma::store_matrix_sync(cs, fc, 16, wmma::mem_row_major);
	__syncwarp();
	for (int i = threadIdx.x; i < 256; i += 32)
		if (row + i / 16 < m && col + i % 16 < n)
			c[(long long)(row + i / 16) * n + col + i % 16] = __float2bfloat16(cs[i]);
}
