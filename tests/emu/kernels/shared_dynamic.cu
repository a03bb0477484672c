// launch: sum grid=4 block=128 shared=1024 args=o,i,i32:128
// launch: two grid=2 block=32 shared=4096 args=o
// launch: big grid=2 block=256 shared=200000 args=o
// Dynamic shared memory under several names and types, up to the device's limit.

static __device__ void expect(unsigned *o, bool ok, unsigned where)
{
	atomicAdd(&o[1], 1u);
	if (!ok && atomicAdd(&o[0], 1u) == 0)
		o[2] = where;
}
__global__ void sum(unsigned *o, const unsigned *in, int n)
{
	extern __shared__ float fs[];
	fs[threadIdx.x] = (float)(in[threadIdx.x + blockIdx.x * n] & 1023u);
	__syncthreads();
	for (int half = n / 2; half; half /= 2) {
		if (threadIdx.x < half)
			fs[threadIdx.x] += fs[threadIdx.x + half];
		__syncthreads();
	}
	if (threadIdx.x == 0) {
		float want = 0;
		for (int k = 0; k < n; k++)
			want += (float)(in[k + blockIdx.x * n] & 1023u);
		expect(o, fs[0] == want, 1);
	}
}

struct item { int a; float b; };
extern __shared__ __align__(16) unsigned char raw[];

__global__ void two(unsigned *o)
{
	item *items = reinterpret_cast<item *>(raw + 2048);
	raw[threadIdx.x] = (unsigned char)threadIdx.x;
	items[threadIdx.x].a = (int)(threadIdx.x * 3 + blockIdx.x);
	__syncthreads();
	expect(o, raw[31 - threadIdx.x] == 31 - threadIdx.x, 2);
	expect(o, items[31 - threadIdx.x].a == (int)((31 - threadIdx.x) * 3 + blockIdx.x), 3);
	expect(o, ((size_t)raw & 15) == 0, 4);
}

__global__ void big(unsigned *o)
{
	extern __shared__ int words[];
	for (int k = threadIdx.x; k < 50000; k += blockDim.x)
		words[k] = k ^ (int)blockIdx.x;
	__syncthreads();
	for (int k = threadIdx.x; k < 50000; k += blockDim.x)
		expect(o, words[49999 - k] == ((49999 - k) ^ (int)blockIdx.x), 5);
}
