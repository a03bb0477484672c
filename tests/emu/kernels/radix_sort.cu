// launch: sort grid=6 block=256 args=i,w
// launch: check grid=1 block=1 args=o,i,w
// A block radix sort, four bits a pass: warp-aggregated ranks by match, scan of digit counts.

static __device__ void expect(unsigned *o, bool ok, unsigned where)
{
	atomicAdd(&o[1], 1u);
	if (!ok && atomicAdd(&o[0], 1u) == 0)
		o[2] = where;
}
__global__ void sort(const unsigned *in, unsigned *out)
{
	__shared__ unsigned keys[2][256];
	__shared__ unsigned counts[16][8], starts[16][8];
	int t = threadIdx.x, lane = t & 31, warp = t >> 5;
	keys[0][t] = in[blockIdx.x * 256 + t];
	__syncthreads();
	for (int bit = 0; bit < 24; bit += 4) {
		int from = bit / 4 & 1;
		unsigned key = keys[from][t], digit = key >> bit & 15u;
		if (t < 128)
			counts[t / 8][t % 8] = 0;
		__syncthreads();
		unsigned peers = __match_any_sync(0xffffffffu, digit);
		int rank = __popc(peers & ((1u << lane) - 1u));
		if (rank == 0)
			counts[digit][warp] = __popc(peers);
		__syncthreads();
		if (t < 32) { /* exclusive scan of 128 counts, four a lane */
			unsigned v[4], sum = 0;
			for (int k = 0; k < 4; k++)
				sum += v[k] = counts[t / 2][(t & 1) * 4 + k];
			unsigned before = sum;
			for (int d = 1; d < 32; d *= 2) {
				unsigned u = __shfl_up_sync(0xffffffffu, before, d);
				if (lane >= d)
					before += u;
			}
			before -= sum;
			for (int k = 0; k < 4; k++) {
				starts[t / 2][(t & 1) * 4 + k] = before;
				before += v[k];
			}
		}
		__syncthreads();
		keys[from ^ 1][starts[digit][warp] + rank] = key;
		__syncthreads();
	}
	out[blockIdx.x * 256 + t] = keys[0][t];
}

__global__ void check(unsigned *o, const unsigned *in, const unsigned *out)
{
	for (int b = 0; b < 6; b++) {
		unsigned long long sum = 0;
		for (int k = 0; k < 256; k++) {
			sum += (unsigned long long)out[b * 256 + k] * out[b * 256 + k] - (unsigned long long)in[b * 256 + k] * in[b * 256 + k];
			expect(o, !k || out[b * 256 + k - 1] <= out[b * 256 + k], b);
		}
		expect(o, sum == 0, 100 + b);
	}
}
