// launch: gemm grid=3,2 block=16,16 shared=8192 args=i,i+8192,w,i32:70,i32:45,i32:33
// launch: check grid=1 block=1 args=o,i,i+8192,w,i32:70,i32:45,i32:33
// A tiled matrix product: double-buffered shared tiles, 2x2 results a thread, ragged edges.

static __device__ void expect(unsigned *o, bool ok, unsigned where)
{
	atomicAdd(&o[1], 1u);
	if (!ok && atomicAdd(&o[0], 1u) == 0)
		o[2] = where;
}
static __device__ __forceinline__ float value(unsigned w) { return (float)(int)(w & 15u) - 7.0f; }

__global__ void gemm(const unsigned *a, const unsigned *b, float *c, int m, int n, int k)
{
	extern __shared__ float tiles[];
	float(*as)[32][17] = reinterpret_cast<float(*)[32][17]>(tiles); /* two tiles of 32 x 16 (+1) */
	__shared__ float bs[2][16][33];
	int tx = threadIdx.x, ty = threadIdx.y, row = blockIdx.x * 32, col = blockIdx.y * 32;
	float sum[2][2] = {};
	auto load = [&](int at, int to) {
#pragma unroll
		for (int i = 0; i < 2; i++) {
			int r = row + ty + 16 * i, q = at + tx;
			as[0][ty + 16 * i][tx] = r < m && q < k ? value(a[r * k + q]) : 0.0f;
			int cc = col + tx + 16 * i, p = at + ty;
			bs[to][ty][tx + 16 * i] = p < k && cc < n ? value(b[p * n + cc]) : 0.0f;
		}
	};
	for (int at = 0, now = 0; at < k; at += 16, now ^= 1) {
		__syncthreads();
		load(at, now);
		__syncthreads();
#pragma unroll 4
		for (int p = 0; p < 16; p++)
			for (int i = 0; i < 2; i++)
				for (int j = 0; j < 2; j++)
					sum[i][j] += as[0][ty + 16 * i][p] * bs[now][p][tx + 16 * j];
	}
	for (int i = 0; i < 2; i++)
		for (int j = 0; j < 2; j++) {
			int r = row + ty + 16 * i, cc = col + tx + 16 * j;
			if (r < m && cc < n)
				c[r * n + cc] = sum[i][j];
		}
}

__global__ void check(unsigned *o, const unsigned *a, const unsigned *b, const float *c, int m, int n, int k)
{
	for (int r = 0; r < m; r++)
		for (int q = 0; q < n; q++) {
			float sum = 0;
			for (int p = 0; p < k; p++)
				sum += value(a[r * k + p]) * value(b[p * n + q]);
			expect(o, c[r * n + q] == sum, r * 1000 + q);
		}
}
