// launch: block grid=3 block=64 args=o
// launch: whole grid=6 block=64 coop args=o,w
// residency: 6
// Cooperative groups: block, tiles, coalesced groups, reduce, scan, grid.sync.

#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;

static __device__ void expect(unsigned *o, bool ok, unsigned where)
{
	atomicAdd(&o[1], 1u);
	if (!ok && atomicAdd(&o[0], 1u) == 0)
		o[2] = where;
}
struct wide {
	int a[5];
};

__global__ void block(unsigned *o)
{
	cg::thread_block b = cg::this_thread_block();
	cg::thread_block_tile<32> warp = cg::tiled_partition<32>(b);
	auto tile = cg::tiled_partition<8>(warp);
	int t = b.thread_rank(), lane = t & 31, in = t & 7;
	__shared__ int s[64];
	s[t] = t;
	b.sync();
	expect(o, s[63 - t] == 63 - t && b.size() == 64 && b.group_index().x == blockIdx.x, 1);
	expect(o, warp.thread_rank() == lane && warp.meta_group_rank() == t / 32 && warp.meta_group_size() == 2, 2);
	expect(o, tile.thread_rank() == in && tile.size() == 8 && tile.meta_group_rank() == t / 8, 3);
	expect(o, tile.shfl(t, 3) == (t & ~7) + 3 && tile.shfl_xor(t, 4) == (t ^ 4), 4);
	expect(o, tile.shfl_up(t, 1) == (in ? t - 1 : t) && tile.shfl_down(t, 1) == (in < 7 ? t + 1 : t), 5);
	expect(o, tile.ballot(in > 4) == 0xe0u && tile.any(in == 7) && !tile.all(in), 6);
	expect(o, tile.match_any(in / 2) == 3u << (in & ~1), 7);
	expect(o, cg::reduce(warp, lane, cg::plus<int>()) == 496, 8);
	expect(o, cg::reduce(tile, in * 1.5f, cg::plus<float>()) == 42.0f, 9);
	expect(o, cg::reduce(tile, t, cg::greater<int>()) == (t | 7) && cg::reduce(tile, t, cg::less<int>()) == (t & ~7), 10);
	expect(o, cg::inclusive_scan(tile, 2) == 2 * (in + 1), 11);
	expect(o, cg::exclusive_scan(warp, lane, cg::plus<int>()) == lane * (lane - 1) / 2, 12);
	wide v;
	for (int k = 0; k < 5; k++)
		v.a[k] = t * 10 + k;
	wide r = warp.shfl(v, 9);
	expect(o, r.a[4] == ((t & ~31) + 9) * 10 + 4 && r.a[0] == ((t & ~31) + 9) * 10, 13);
	if (lane % 3 == 1) {
		cg::coalesced_group c = cg::coalesced_threads();
		expect(o, c.size() == 11 && c.thread_rank() == lane / 3, 14);
		expect(o, c.shfl(lane, 2) == 7 && c.ballot(1) == 0x7ffu, 15);
		expect(o, cg::reduce(c, 1, cg::plus<int>()) == 11, 16);
		expect(o, c.shfl_down(lane, 1) == (lane == 31 ? 31 : lane + 3), 17);
	}
	auto odd = cg::labeled_partition(warp, (unsigned)lane % 5);
	expect(o, odd.size() == (lane % 5 < 2 ? 7 : 6), 18);
	cg::sync(warp);
}

__global__ void whole(unsigned *o, unsigned *w)
{
	cg::grid_group g = cg::this_grid();
	unsigned me = (unsigned)g.thread_rank(), n = (unsigned)g.size();
	__shared__ unsigned kept;
	if (threadIdx.x == 0)
		kept = blockIdx.x * 7;
	for (int round = 0; round < 5; round++) {
		w[me] = me * 3 + round;
		g.sync();
		unsigned other = (me + 64 * (round + 1)) % n;
		expect(o, w[other] == other * 3 + round, 20);
		g.sync();
		expect(o, kept == blockIdx.x * 7, 21);
	}
}
