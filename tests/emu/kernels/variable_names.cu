// launch: sum grid=3 block=64 args=o,i
// residency: 2
// scan: "defined":\[\]
// Variables outside functions, by names that libc has as well. None of them is refused, none stands for libc's.

__constant__ float environ[4] = {1.0f, 2.0f, 3.0f, 4.0f};
__constant__ unsigned table[2] = {5, 6}, read = 7;
static __constant__ unsigned write = 8;
__shared__ unsigned malloc[64], free;
extern __shared__ unsigned memcpy_area[];

__global__ void sum(unsigned *o, const unsigned *in)
{
	malloc[threadIdx.x] = in[threadIdx.x] + table[threadIdx.x % 2];
	if (threadIdx.x == 0)
		free = read + write + (unsigned)environ[3];
	__syncthreads();
	unsigned other = 63 - threadIdx.x;
	atomicAdd(&o[1], 1u);
	if (malloc[other] + free != in[other] + 5 + other % 2 + 19 && atomicAdd(&o[0], 1u) == 0)
		o[2] = 1;
}
