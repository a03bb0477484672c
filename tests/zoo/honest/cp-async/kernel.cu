/* Four stages of 16-byte copies; the last one is cut short and filled with zeros. Tails are stored one by one. */
#define STAGES 4
#define TILE 512

__device__ static void fetch(float *to, const float *x, int tile, int n)
{
	int at = tile * TILE + threadIdx.x * 4, left = min(max(n - at, 0), 4) * 4;
	unsigned dst = (unsigned)__cvta_generic_to_shared(to + threadIdx.x * 4);
	const float *src = left ? x + at : x;
	asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" :: "r"(dst), "l"(src), "r"(left) : "memory");
}

extern "C" __global__ void __launch_bounds__(128) add_stages(const float *x, const float *y, float *out, int n)
{
	__shared__ __align__(16) float a[STAGES][TILE], b[STAGES][TILE];
	int tiles = (n + TILE - 1) / TILE, ahead = blockIdx.x, s = 0;

	for (int k = 0; k < STAGES - 1; k++, ahead += gridDim.x) {
		fetch(a[k], x, ahead, n);
		fetch(b[k], y, ahead, n);
		asm volatile("cp.async.commit_group;" ::: "memory");
	}
	for (int t = blockIdx.x; t < tiles; t += gridDim.x, ahead += gridDim.x) {
		int put = (s + STAGES - 1) % STAGES;
		fetch(a[put], x, ahead, n);
		fetch(b[put], y, ahead, n);
		asm volatile("cp.async.commit_group;\ncp.async.wait_group %0;" :: "n"(STAGES - 1) : "memory");
		int at = t * TILE + threadIdx.x * 4;
		float4 p = *(float4 *)&a[s][threadIdx.x * 4], q = *(float4 *)&b[s][threadIdx.x * 4];
		float sum[4] = {p.x + q.x, p.y + q.y, p.z + q.z, p.w + q.w};
		for (int k = 0; k < 4; k++)
			if (at + k < n)
				out[at + k] = sum[k];
		s = (s + 1) % STAGES;
	}
	asm volatile("cp.async.wait_all;" ::: "memory");
}
