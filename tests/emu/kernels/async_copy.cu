// launch: staged grid=2 block=64 args=o,i
// launch: grouped grid=2 block=64 args=o,i
// Asynchronous copies: two stages in flight, zero fill, whole-block memcpy_async.

#include <cuda_pipeline.h>
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
namespace cg = cooperative_groups;

static __device__ void expect(unsigned *o, bool ok, unsigned where)
{
	atomicAdd(&o[1], 1u);
	if (!ok && atomicAdd(&o[0], 1u) == 0)
		o[2] = where;
}
__global__ void staged(unsigned *o, const uint4 *in)
{
	__shared__ uint4 s[3][64];
	int t = threadIdx.x;
	for (int k = 0; k < 2; k++) {
		__pipeline_memcpy_async(&s[k][t], &in[k * 64 + t], 16);
		__pipeline_commit();
	}
	for (int k = 0; k < 6; k++) {
		if (k + 2 < 6)
			__pipeline_memcpy_async(&s[(k + 2) % 3][t], &in[(k + 2) * 64 + t], 16);
		__pipeline_commit();
		__pipeline_wait_prior(2);
		__syncthreads();
		uint4 v = s[k % 3][63 - t], w = in[k * 64 + 63 - t];
		expect(o, v.x == w.x && v.w == w.w, 1);
		__syncthreads();
	}
	s[0][t] = make_uint4(1, 2, 3, 4);
	__pipeline_memcpy_async(&s[0][t], &in[t], 16, 8);
	__pipeline_commit();
	__pipeline_wait_prior(0);
	expect(o, s[0][t].x == in[t].x && s[0][t].z == 0 && s[0][t].w == 0, 2);
}

__global__ void grouped(unsigned *o, const unsigned *in)
{
	extern __shared__ unsigned dynamic[];
	__shared__ unsigned s[500];
	auto b = cg::this_thread_block();
	cg::memcpy_async(b, s, in + 7, sizeof s);
	cg::wait(b);
	for (int k = threadIdx.x; k < 500; k += 64)
		expect(o, s[499 - k] == in[506 - k], 3);
}
