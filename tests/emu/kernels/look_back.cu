// launch: scan grid=40 block=128 args=i,w,i32:5000
// launch: check grid=1 block=1 args=o,i,w,i32:5000
// residency: 3
// Single-pass scan with decoupled look-back, far more blocks than resident ones.

static __device__ void expect(unsigned *o, bool ok, unsigned where)
{
	atomicAdd(&o[1], 1u);
	if (!ok && atomicAdd(&o[0], 1u) == 0)
		o[2] = where;
}
__global__ void scan(const unsigned *in, unsigned *w, int n)
{
	__shared__ unsigned s[128];
	__shared__ unsigned prefix;
	__shared__ int tile;
	unsigned *out = w, *ticket = w + 8192;
	volatile unsigned long long *state = (volatile unsigned long long *)(w + 8200);
	if (threadIdx.x == 0)
		tile = (int)atomicAdd(ticket, 1u);
	__syncthreads();
	int i = tile * 128 + threadIdx.x;
	s[threadIdx.x] = i < n ? in[i] & 255u : 0;
	__syncthreads();
	for (int k = 1; k < 128; k *= 2) {
		unsigned v = threadIdx.x >= k ? s[threadIdx.x - k] : 0;
		__syncthreads();
		s[threadIdx.x] += v;
		__syncthreads();
	}
	if (threadIdx.x == 0) {
		unsigned sum = s[127], before = 0;
		state[tile] = (tile ? 1ull : 2ull) << 32 | sum;
		__threadfence();
		for (int look = tile - 1; look >= 0;) {
			unsigned long long v = state[look];
			if (v >> 32 == 0)
				continue; /* not there yet: wait */
			before += (unsigned)v;
			if (v >> 32 == 2)
				break;
			look--;
		}
		state[tile] = 2ull << 32 | (before + sum);
		__threadfence();
		prefix = before;
	}
	__syncthreads();
	if (i < n)
		out[i] = prefix + s[threadIdx.x];
}

__global__ void check(unsigned *o, const unsigned *in, unsigned *w, int n)
{
	unsigned sum = 0;
	for (int k = 0; k < n; k++) {
		sum += in[k] & 255u;
		expect(o, w[k] == sum, k);
	}
}
