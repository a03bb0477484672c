/* Cooperative groups: thread_block, tiles, coalesced groups, grid; reduce and scan.
 *
 * SPDX-License-Identifier: MIT
 *
 * Clusters are not emulated: this_cluster() is a cluster of one block.
 */
#ifndef EMU_COOPERATIVE_GROUPS_H
#define EMU_COOPERATIVE_GROUPS_H

namespace cooperative_groups {

#define EMU_AT line, file

EMU_INLINE unsigned emu_block_rank()
{
	return emu_thread.lin;
}
EMU_INLINE unsigned emu_block_size() { return blockDim.x * blockDim.y * blockDim.z; }

struct thread_group {};

struct thread_block : thread_group {
	EMU_INLINE void sync(EMU_LINE_ARGS) const { __syncthreads(EMU_AT); }
	struct arrival_token {};
	EMU_INLINE static unsigned thread_rank() { return emu_block_rank(); }
	EMU_INLINE static unsigned size() { return emu_block_size(); }
	EMU_INLINE static unsigned num_threads() { return emu_block_size(); }
	EMU_INLINE static dim3 group_index() { return dim3(blockIdx.x, blockIdx.y, blockIdx.z); }
	EMU_INLINE static dim3 thread_index() { return dim3(threadIdx.x, threadIdx.y, threadIdx.z); }
	EMU_INLINE static dim3 group_dim() { return dim3(blockDim.x, blockDim.y, blockDim.z); }
	EMU_INLINE static dim3 dim_threads() { return group_dim(); }
};
EMU_INLINE thread_block this_thread_block() { return thread_block(); }

struct grid_group : thread_group {
	EMU_INLINE void sync(EMU_LINE_ARGS) const { emu_grid_sync(EMU_AT); }
	EMU_INLINE static bool is_valid() { return true; }
	EMU_INLINE static unsigned long long block_rank()
	{
		return blockIdx.x + (unsigned long long)gridDim.x * (blockIdx.y + (unsigned long long)gridDim.y * blockIdx.z);
	}
	EMU_INLINE static unsigned long long num_blocks()
	{
		return (unsigned long long)gridDim.x * gridDim.y * gridDim.z;
	}
	EMU_INLINE static unsigned long long thread_rank()
	{
		return block_rank() * emu_block_size() + emu_block_rank();
	}
	EMU_INLINE static unsigned long long size() { return num_blocks() * emu_block_size(); }
	EMU_INLINE static unsigned long long num_threads() { return size(); }
	EMU_INLINE static dim3 group_dim() { return dim3(gridDim.x, gridDim.y, gridDim.z); }
	EMU_INLINE static dim3 dim_blocks() { return group_dim(); }
	EMU_INLINE static dim3 block_index() { return dim3(blockIdx.x, blockIdx.y, blockIdx.z); }
};
EMU_INLINE grid_group this_grid() { return grid_group(); }

struct cluster_group : thread_group {
	EMU_INLINE void sync(EMU_LINE_ARGS) const { __syncthreads(EMU_AT); }
	EMU_INLINE static unsigned block_rank() { return 0; }
	EMU_INLINE static unsigned num_blocks() { return 1; }
	EMU_INLINE static dim3 block_index() { return dim3(0, 0, 0); }
	EMU_INLINE static dim3 dim_blocks() { return dim3(1, 1, 1); }
	EMU_INLINE static unsigned thread_rank() { return emu_block_rank(); }
	EMU_INLINE static unsigned num_threads() { return emu_block_size(); }
	template <class T> EMU_INLINE T *map_shared_rank(T *p, int) const { return p; }
	template <class T> EMU_INLINE unsigned query_shared_rank(const T *) const { return 0; }
};
EMU_INLINE cluster_group this_cluster() { return cluster_group(); }

/* lanes of one warp: `mask` names them, `first` is the lowest lane of a tile */
struct emu_lanes {
	unsigned mask;
	EMU_INLINE void sync(EMU_LINE_ARGS) const { __syncwarp(mask, EMU_AT); }
	EMU_INLINE int any(int p, EMU_LINE_ARGS) const { return __any_sync(mask, p, EMU_AT); }
	EMU_INLINE int all(int p, EMU_LINE_ARGS) const { return __all_sync(mask, p, EMU_AT); }
};

template <unsigned N, class Parent = void> struct thread_block_tile : emu_lanes, thread_group {
	static_assert(N >= 1 && N <= 32 && (N & (N - 1)) == 0, "not emulable: tiles of more than 32 threads");
	EMU_INLINE static unsigned base() { return __laneid() & ~(N - 1u); }
	EMU_INLINE thread_block_tile()
	{
		mask = (N == 32 ? ~0u : (1u << (N & 31u)) - 1u) << base();
	}
	template <class Q> EMU_INLINE thread_block_tile(const thread_block_tile<N, Q> &) : thread_block_tile() {}
	EMU_INLINE static unsigned thread_rank() { return __laneid() & (N - 1u); }
	EMU_INLINE static constexpr unsigned size() { return N; }
	EMU_INLINE static constexpr unsigned num_threads() { return N; }
	EMU_INLINE static unsigned meta_group_rank() { return emu_block_rank() / N; }
	EMU_INLINE static unsigned meta_group_size() { return (emu_block_size() + N - 1u) / N; }
	template <class T> EMU_INLINE T shfl(T v, int lane, EMU_LINE_ARGS) const
	{
		return emu_shfl(mask, v, lane, (int)N, EMU_AT);
	}
	template <class T> EMU_INLINE T shfl_up(T v, unsigned n, EMU_LINE_ARGS) const
	{
		return emu_shfl_up(mask, v, n, (int)N, EMU_AT);
	}
	template <class T> EMU_INLINE T shfl_down(T v, unsigned n, EMU_LINE_ARGS) const
	{
		return emu_shfl_down(mask, v, n, (int)N, EMU_AT);
	}
	template <class T> EMU_INLINE T shfl_xor(T v, int bits, EMU_LINE_ARGS) const
	{
		return emu_shfl_xor(mask, v, bits, (int)N, EMU_AT);
	}
	EMU_INLINE unsigned ballot(int p, EMU_LINE_ARGS) const
	{
		return __ballot_sync(mask, p, EMU_AT) >> base();
	}
	template <class T> EMU_INLINE unsigned match_any(T v, EMU_LINE_ARGS) const
	{
		return __match_any_sync(mask, v, EMU_AT) >> base();
	}
	template <class T> EMU_INLINE unsigned match_all(T v, int &same, EMU_LINE_ARGS) const
	{
		return __match_all_sync(mask, v, &same, EMU_AT) >> base();
	}
	/* the rank-th lane of the group */
	EMU_INLINE int emu_lane(unsigned rank) const { return (int)(base() + rank); }
};

struct coalesced_group : emu_lanes, thread_group {
	EMU_INLINE unsigned thread_rank() const { return (unsigned)__popc(mask & ((1u << __laneid()) - 1u)); }
	EMU_INLINE unsigned size() const { return (unsigned)__popc(mask); }
	EMU_INLINE unsigned num_threads() const { return size(); }
	EMU_INLINE static unsigned meta_group_rank() { return 0; }
	EMU_INLINE static unsigned meta_group_size() { return 1; }
	EMU_INLINE int emu_lane(unsigned rank) const
	{
		unsigned m = mask;
		for (; rank; rank--)
			m &= m - 1;
		return __ffs((int)m) - 1;
	}
	EMU_INLINE unsigned pack(unsigned lanes) const
	{
		unsigned r = 0;
		for (unsigned k = 0, m = mask; m; m &= m - 1, k++)
			r |= (lanes >> (__ffs((int)m) - 1) & 1u) << k;
		return r;
	}
	template <class T> EMU_INLINE T shfl(T v, unsigned rank, EMU_LINE_ARGS) const
	{
		return emu_exchange(EMU_WARP_SHFL_IDX, mask, v, emu_lane(rank % size()), EMU_AT);
	}
	template <class T> EMU_INLINE T shfl_up(T v, unsigned n, EMU_LINE_ARGS) const
	{
		unsigned r = thread_rank();
		return emu_exchange(EMU_WARP_SHFL_UP, mask, v, emu_lane(r < n ? r : r - n), EMU_AT);
	}
	template <class T> EMU_INLINE T shfl_down(T v, unsigned n, EMU_LINE_ARGS) const
	{
		unsigned r = thread_rank();
		return emu_exchange(EMU_WARP_SHFL_DOWN, mask, v, emu_lane(r + n < size() ? r + n : r), EMU_AT);
	}
	EMU_INLINE unsigned ballot(int p, EMU_LINE_ARGS) const { return pack(__ballot_sync(mask, p, EMU_AT)); }
	template <class T> EMU_INLINE unsigned match_any(T v, EMU_LINE_ARGS) const
	{
		return pack(__match_any_sync(mask, v, EMU_AT));
	}
	template <class T> EMU_INLINE unsigned match_all(T v, int &same, EMU_LINE_ARGS) const
	{
		return pack(__match_all_sync(mask, v, &same, EMU_AT));
	}
};
EMU_INLINE coalesced_group emu_group_of(unsigned mask)
{
	coalesced_group g;
	g.mask = mask;
	return g;
}
EMU_INLINE coalesced_group coalesced_threads(EMU_LINE_ARGS)
{
	return emu_group_of(__activemask(EMU_AT));
}

template <unsigned N, class P> EMU_INLINE thread_block_tile<N, P> tiled_partition(const P &)
{
	return thread_block_tile<N, P>();
}
/* a group of a size known only at run time */
EMU_INLINE coalesced_group tiled_partition(const thread_block &, unsigned n)
{
	unsigned base = __laneid() & ~(n - 1u);
	return emu_group_of((n >= 32 ? ~0u : (1u << n) - 1u) << base);
}
template <class G> EMU_INLINE coalesced_group labeled_partition(const G &g, unsigned label, EMU_LINE_ARGS)
{
	return emu_group_of(__match_any_sync(g.mask, label, EMU_AT));
}
template <class G> EMU_INLINE coalesced_group binary_partition(const G &g, bool p, EMU_LINE_ARGS)
{
	return emu_group_of(__match_any_sync(g.mask, (unsigned)p, EMU_AT));
}

template <class G> EMU_INLINE void sync(const G &g, EMU_LINE_ARGS) { g.sync(EMU_AT); }
template <class G> EMU_INLINE unsigned thread_rank(const G &g) { return (unsigned)g.thread_rank(); }
template <class G> EMU_INLINE unsigned group_size(const G &g) { return (unsigned)g.size(); }

template <class T = void> struct plus { template <class U> EMU_INLINE U operator()(U a, U b) const { return a + b; } };
template <class T = void> struct less { template <class U> EMU_INLINE U operator()(U a, U b) const { return b < a ? b : a; } };
template <class T = void> struct greater { template <class U> EMU_INLINE U operator()(U a, U b) const { return a < b ? b : a; } };
template <class T = void> struct bit_and { template <class U> EMU_INLINE U operator()(U a, U b) const { return a & b; } };
template <class T = void> struct bit_or { template <class U> EMU_INLINE U operator()(U a, U b) const { return a | b; } };
template <class T = void> struct bit_xor { template <class U> EMU_INLINE U operator()(U a, U b) const { return a ^ b; } };

/* The combining tree of shuffles by halves; all ranks get rank 0's result, so that all agree. */
template <class G, class T, class Op> EMU_INLINE T reduce(const G &g, T v, Op op, EMU_LINE_ARGS)
{
	unsigned n = g.size(), rank = g.thread_rank(), top = 1;
	while (top < n)
		top *= 2;
	for (unsigned k = top / 2; k; k /= 2) {
		T w = emu_exchange(EMU_WARP_SHFL_DOWN, g.mask, v, g.emu_lane(rank + k < n ? rank + k : rank), EMU_AT);
		if (rank + k < n && rank < k)
			v = op(v, w);
	}
	return emu_exchange(EMU_WARP_SHFL_IDX, g.mask, v, g.emu_lane(0), EMU_AT);
}
template <class G, class T, class Op> EMU_INLINE T inclusive_scan(const G &g, T v, Op op, EMU_LINE_ARGS)
{
	unsigned n = g.size(), rank = g.thread_rank();
	for (unsigned k = 1; k < n; k *= 2) {
		T w = emu_exchange(EMU_WARP_SHFL_UP, g.mask, v, g.emu_lane(rank < k ? rank : rank - k), EMU_AT);
		if (rank >= k)
			v = op(w, v);
	}
	return v;
}
template <class G, class T> EMU_INLINE T inclusive_scan(const G &g, T v, EMU_LINE_ARGS)
{
	return inclusive_scan(g, v, plus<T>(), EMU_AT);
}
template <class G, class T, class Op> EMU_INLINE T exclusive_scan(const G &g, T v, Op op, EMU_LINE_ARGS)
{
	unsigned rank = g.thread_rank();
	T in = inclusive_scan(g, v, op, EMU_AT);
	T r = emu_exchange(EMU_WARP_SHFL_UP, g.mask, in, g.emu_lane(rank ? rank - 1 : 0), EMU_AT);
	return rank ? r : T(0);
}
template <class G, class T> EMU_INLINE T exclusive_scan(const G &g, T v, EMU_LINE_ARGS)
{
	return exclusive_scan(g, v, plus<T>(), EMU_AT);
}

template <class G, class F> EMU_INLINE void invoke_one(const G &g, F f)
{
	if (g.thread_rank() == 0)
		f();
}

/* each thread copies its share, and has it at wait() */
template <class G, class T>
EMU_INLINE void memcpy_async(const G &g, T *to, const T *from, size_t bytes)
{
	size_t n = g.size(), words = bytes / 4;
	for (size_t k = g.thread_rank(); k < words; k += n)
		emu_copy_async((char *)to + 4 * k, (const char *)from + 4 * k, 4, 0);
	if (g.thread_rank() == 0 && bytes % 4)
		emu_copy_async((char *)to + 4 * words, (const char *)from + 4 * words, (unsigned)(bytes % 4), 0);
	emu_copy_commit();
}
template <class G> EMU_INLINE void wait(const G &g, EMU_LINE_ARGS)
{
	emu_copy_wait(0);
	g.sync(EMU_AT);
}
template <unsigned N, class G> EMU_INLINE void wait_prior(const G &g, EMU_LINE_ARGS)
{
	emu_copy_wait(N);
	g.sync(EMU_AT);
}

#undef EMU_AT

} // namespace cooperative_groups
#endif
