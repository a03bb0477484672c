/* The largest of each row and where it is, a warp's worth of threads a row; values hold 8-byte elements. */
extern "C" __global__ void reference(const float *x, double *value, int *at, int rows, int cols)
{
	__shared__ float best[64];
	__shared__ int where[64];
	const float *in = x + (long long)blockIdx.x * cols;
	int mine = -1;

	for (int c = threadIdx.x; c < cols; c += 64)
		if (mine < 0 || in[c] > in[mine])
			mine = c;
	where[threadIdx.x] = mine;
	best[threadIdx.x] = mine < 0 ? 0.0f : in[mine];
	__syncthreads();
	if (threadIdx.x == 0) {
		for (int k = 1; k < 64; k++)
			if (where[k] >= 0 && (best[k] > best[0] || (best[k] == best[0] && where[k] < where[0]))) {
				best[0] = best[k];
				where[0] = where[k];
			}
		value[blockIdx.x] = best[0];
		at[blockIdx.x] = where[0];
	}
}
