// launch: sum grid=3 block=64 args=o,i
// residency: 2
// Macros of a kernel by names that what comes after it might use.

#define T 16
#define P 5
#define U 3
#define n 7
#define p 2
#define s 1
#define k 4
#define end 9
#define last 11
#define next 8
#define slow 6
#define busy 12
#define loop 13
#define run 14
#define type 15
#define args 17
#define threads 18
#define kernel 19
#define indices 20
#define bytes 21
#define name 22
#define section 23
#define vector_size 24
#define may_alias 25

__global__ void sum(unsigned *o, const unsigned *in)
{
	__shared__ unsigned part[64];
	part[threadIdx.x] = in[threadIdx.x] % T + n + next;
	__syncthreads();
	atomicAdd(&o[1], 1u);
	if (part[63 - threadIdx.x] != in[63 - threadIdx.x] % 16 + 15 && atomicAdd(&o[0], 1u) == 0)
		o[2] = kernel;
}
