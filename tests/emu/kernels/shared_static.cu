// launch: flip<64> grid=5 block=64 args=o,w
// launch: flip<256> grid=3 block=256 args=o,w
// Static shared memory, in templates too; a block's threads see each other's values.

static __device__ void expect(unsigned *o, bool ok, unsigned where)
{
	atomicAdd(&o[1], 1u);
	if (!ok && atomicAdd(&o[0], 1u) == 0)
		o[2] = where;
}
struct pair { float a; int b; };

template <int N> __global__ void __launch_bounds__(N) flip(unsigned *o, int *w)
{
	__shared__ int s[N];
	static __shared__ pair p[N];
	__shared__ alignas(128) double d;
	__shared__ __align__(64) char c[3];
	int t = threadIdx.x;
	s[t] = (int)blockIdx.x * 1000 + t;
	p[t].a = (float)t;
	p[t].b = -t;
	if (t == N - 1) {
		d = 0.5 + blockIdx.x;
		c[1] = 7;
	}
	__syncthreads();
	int r = N - 1 - t;
	expect(o, s[r] == (int)blockIdx.x * 1000 + r, 1);
	expect(o, p[r].a == (float)r && p[r].b == -r, 2);
	expect(o, d == 0.5 + blockIdx.x && c[1] == 7, 3);
	expect(o, ((size_t)&d & 127) == 0 && ((size_t)c & 63) == 0, 4);
	w[blockIdx.x * N + t] = s[r];
}
