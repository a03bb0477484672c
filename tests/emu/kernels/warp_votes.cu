// launch: votes grid=2 block=64 args=o
// Votes, matches, reductions, __syncwarp, __activemask in branches.

static __device__ void expect(unsigned *o, bool ok, unsigned where)
{
	atomicAdd(&o[1], 1u);
	if (!ok && atomicAdd(&o[0], 1u) == 0)
		o[2] = where;
}
__global__ void votes(unsigned *o)
{
	int lane = threadIdx.x & 31;
	const unsigned full = 0xffffffffu;
	expect(o, __ballot_sync(full, lane & 1) == 0xaaaaaaaau, 1);
	expect(o, __any_sync(full, lane == 31) == 1 && __any_sync(full, lane == 32) == 0, 2);
	expect(o, __all_sync(full, lane < 32) == 1 && __all_sync(full, lane != 3) == 0, 3);
	expect(o, __match_any_sync(full, lane / 4) == 15u << (lane & ~3), 4);
	int same;
	expect(o, __match_all_sync(full, 7.5, &same) == full && same, 5);
	expect(o, __match_all_sync(full, (unsigned long long)lane, &same) == 0 && !same, 6);
	expect(o, __reduce_add_sync(full, lane) == 496 && __reduce_add_sync(full, (unsigned)lane) == 496u, 7);
	expect(o, __reduce_min_sync(full, lane - 9) == -9 && __reduce_max_sync(full, -lane) == 0, 8);
	expect(o, __reduce_min_sync(full, lane + 1u) == 1u && __reduce_max_sync(full, ~0u - lane) == ~0u, 9);
	expect(o, __reduce_and_sync(full, 0xf0u | lane) == 0xe0u + 0x10u, 10);
	expect(o, __reduce_or_sync(full, 1u << lane) == full && __reduce_xor_sync(full, 1u << lane) == full, 11);
	__shared__ int s[64];
	s[threadIdx.x] = lane;
	__syncwarp();
	expect(o, s[threadIdx.x ^ 17] == (lane ^ 17), 12);
	__syncwarp();
	if (lane < 7) {
		unsigned m = __activemask();
		expect(o, m == 0x7fu, 13);
		expect(o, __reduce_add_sync(m, 1) == 7, 14);
	} else if (lane < 20) {
		expect(o, __popc(__activemask()) == 13, 15);
	}
	if (lane % 3 == 0)
		return;
	__syncwarp(0xb6db6db6u);
	expect(o, __ballot_sync(0xb6db6db6u, 1) == 0xb6db6db6u, 16);
}
