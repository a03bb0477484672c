/*
 * transpose: y[c][r] = x[r][c], fp32.
 *
 * Two kernels, the plan chooses by shape. `transpose4` (both sizes multiples of four): a thread
 * reads four float4 of four rows, turns the 4 x 4 square in registers and passes four float4 through
 * shared memory, where the groups of a row are permuted by the row (XOR) so that neither side has
 * bank conflicts. `transpose1` moves single floats through a padded tile.
 * ORDER 1 walks the tiles down the columns of x first, so that neighbouring blocks write neighbouring
 * lines. HINT 1 marks x and y as used once.
 */
#if HINT == 0
#define LOAD(p) (*(p))
#define STORE(p, v) (*(p) = (v))
#else
#define LOAD(p) __ldcs(p)
#define STORE(p, v) __stcs(p, v)
#endif

/* First row and column of this block's tile; tiles are numbered in one dimension. */
__device__ static int2 place(int tile, int rows, int cols)
{
	int b = blockIdx.x;
#if ORDER == 0
	int across = (cols + tile - 1) / tile;
	return make_int2(b / across * tile, b % across * tile);
#else
	int down = (rows + tile - 1) / tile;
	return make_int2(b % down * tile, b / down * tile);
#endif
}

#define GROUPS (TILE / 4)          /* float4 in a row of the tile */
#define SQUARES (GROUPS * GROUPS)  /* 4 x 4 squares of the tile */
#define PERM(row) (((row) >> 2) & 7)

extern "C" __global__ void __launch_bounds__(BLOCK)
transpose4(const float *__restrict__ x, float *__restrict__ y, int rows, int cols)
{
	extern __shared__ float4 shared4[];
	int2 p = place(TILE, rows, cols);
	float4 a[SQUARES / BLOCK][4];

#pragma unroll
	for (int k = 0; k < SQUARES / BLOCK; k++) {
		int q = threadIdx.x + k * BLOCK, c = q % GROUPS * 4, r = q / GROUPS * 4;
#pragma unroll
		for (int i = 0; i < 4; i++) {
			a[k][i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
			if (p.x + r + i < rows && p.y + c < cols)
				a[k][i] = LOAD((const float4 *)(x + (long long)(p.x + r + i) * cols + p.y + c));
		}
	}
#pragma unroll
	for (int k = 0; k < SQUARES / BLOCK; k++) {
		int q = threadIdx.x + k * BLOCK, c = q % GROUPS * 4, g = q / GROUPS;
		float4 *v = a[k];
		shared4[(c + 0) * GROUPS + (g ^ PERM(c))] = make_float4(v[0].x, v[1].x, v[2].x, v[3].x);
		shared4[(c + 1) * GROUPS + (g ^ PERM(c))] = make_float4(v[0].y, v[1].y, v[2].y, v[3].y);
		shared4[(c + 2) * GROUPS + (g ^ PERM(c))] = make_float4(v[0].z, v[1].z, v[2].z, v[3].z);
		shared4[(c + 3) * GROUPS + (g ^ PERM(c))] = make_float4(v[0].w, v[1].w, v[2].w, v[3].w);
	}
	__syncthreads();
#pragma unroll
	for (int i = threadIdx.x; i < TILE * GROUPS; i += BLOCK) {
		int c = i / GROUPS, g = i % GROUPS;
		if (p.y + c < cols && p.x + g * 4 < rows)
			STORE((float4 *)(y + (long long)(p.y + c) * rows + p.x + g * 4),
			      shared4[c * GROUPS + (g ^ PERM(c))]);
	}
}

#define TILE1 64
#define STEP (BLOCK / TILE1)      /* rows that the block covers at a time */

extern "C" __global__ void __launch_bounds__(BLOCK)
transpose1(const float *__restrict__ x, float *__restrict__ y, int rows, int cols)
{
	__shared__ float tile[TILE1][TILE1 + 1];
	int2 p = place(TILE1, rows, cols);
	int lane = threadIdx.x % TILE1, first = threadIdx.x / TILE1;
	const float *in = x + (long long)(p.x + first) * cols + p.y + lane;
	float *out = y + (long long)(p.y + first) * rows + p.x + lane;
	int high = p.y + lane < cols ? rows - p.x - first : 0, wide = p.x + lane < rows ? cols - p.y - first : 0;
	float v[TILE1 / STEP];

#pragma unroll
	for (int i = 0; i < TILE1 / STEP; i++, in += (long long)STEP * cols) {
		v[i] = 0.0f;
		if (i * STEP < high)
			v[i] = LOAD(in);
	}
#pragma unroll
	for (int i = 0; i < TILE1 / STEP; i++)
		tile[first + i * STEP][lane] = v[i];
	__syncthreads();
#pragma unroll
	for (int i = 0; i < TILE1 / STEP; i++, out += (long long)STEP * rows)
		if (i * STEP < wide)
			STORE(out, tile[lane][first + i * STEP]);
}
