// launch: honest grid=4 block=128 args=o,w,i
// launch: check grid=1 block=1 args=o,w
// residency: 2
// No report for: one flag set by all, an in-place update, warp exchange through shared memory,
// publishing by fence and flag, a last-block reduction, double buffering.

__global__ void honest(unsigned *o, unsigned *w, const unsigned *in)
{
	__shared__ unsigned s[2][128];
	__shared__ int any;
	__shared__ bool last;
	int t = threadIdx.x, lane = t & 31;
	if (t == 0)
		any = 0;
	__syncthreads();
	if (in[t] & 1u)
		any = 1;
	__syncthreads();
	s[0][t] = in[t] + any;
	__syncwarp();
	unsigned v = s[0][t ^ 3];
	__syncwarp();
	s[0][t] = v + 1;
	__syncthreads();
	for (int k = 0; k < 4; k++) {
		s[(k + 1) & 1][t] = s[k & 1][127 - t] + k;
		__syncthreads();
	}
	w[4 + blockIdx.x * 128 + t] = s[0][t];
	__threadfence();
	__syncthreads();
	if (t == 0)
		last = atomicAdd(&w[0], 1u) == gridDim.x - 1;
	__syncthreads();
	if (last) {
		unsigned sum = 0;
		for (unsigned b = 0; b < gridDim.x; b++)
			sum += w[4 + b * 128 + t];
		w[1024 + t] = sum;
	}
	if (lane == 0)
		w[2048] = 7;
}

__global__ void check(unsigned *o, unsigned *w)
{
	for (int t = 0; t < 128; t++) {
		unsigned sum = 0;
		for (int b = 0; b < 4; b++)
			sum += w[4 + b * 128 + t];
		o[1]++;
		if (w[1024 + t] != sum)
			o[0]++;
	}
}
