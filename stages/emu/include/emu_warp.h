/* Warp collectives. The runtime makes the lanes of the mask meet.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef EMU_WARP_H
#define EMU_WARP_H

EMU_INLINE void __syncwarp(unsigned mask = 0xffffffffu, EMU_LINE_ARGS)
{
	emu_warp(EMU_WARP_SYNC, mask, 0, 0, line, file);
}
EMU_INLINE unsigned __activemask(EMU_LINE_ARGS) { return emu_activemask(line, file); }
EMU_INLINE unsigned __ballot_sync(unsigned mask, int predicate, EMU_LINE_ARGS)
{
	return (unsigned)emu_warp(EMU_WARP_BALLOT, mask, predicate != 0, 0, line, file);
}
EMU_INLINE int __any_sync(unsigned mask, int predicate, EMU_LINE_ARGS)
{
	return emu_warp(EMU_WARP_OR, mask, predicate != 0, 0, line, file) != 0;
}
EMU_INLINE int __all_sync(unsigned mask, int predicate, EMU_LINE_ARGS)
{
	return emu_warp(EMU_WARP_AND, mask, predicate != 0, 0, line, file) != 0;
}

template <class T>
EMU_INLINE T emu_exchange(int kind, unsigned mask, T v, int source, int line, const char *file)
{
	T r;
	if constexpr (sizeof(T) <= 8) {
		unsigned long long w = 0;
		__builtin_memcpy(&w, &v, sizeof v);
		w = emu_warp(kind, mask, w, (unsigned)source, line, file);
		__builtin_memcpy(&r, &w, sizeof r);
	} else { /* cooperative groups shuffle any trivially copyable type */
		for (unsigned at = 0; at < sizeof(T); at += 8) {
			unsigned n = sizeof(T) - at < 8 ? (unsigned)sizeof(T) - at : 8;
			unsigned long long w = 0;
			__builtin_memcpy(&w, (const char *)&v + at, n);
			w = emu_warp(kind, mask, w, (unsigned)source, line, file);
			__builtin_memcpy((char *)&r + at, &w, n);
		}
	}
	return r;
}

template <class T>
EMU_INLINE T emu_shfl(unsigned mask, T v, int source, int width, int line, const char *file)
{
	int lane = (int)__laneid(), base = lane & ~(width - 1);
	return emu_exchange(EMU_WARP_SHFL_IDX, mask, v, base + (source & (width - 1)), line, file);
}
template <class T>
EMU_INLINE T emu_shfl_up(unsigned mask, T v, unsigned delta, int width, int line, const char *file)
{
	int lane = (int)__laneid(), in = lane & (width - 1);
	return emu_exchange(EMU_WARP_SHFL_UP, mask, v, in < (int)delta ? lane : lane - (int)delta, line,
	                    file);
}
template <class T>
EMU_INLINE T emu_shfl_down(unsigned mask, T v, unsigned delta, int width, int line, const char *file)
{
	int lane = (int)__laneid(), in = lane & (width - 1);
	return emu_exchange(EMU_WARP_SHFL_DOWN, mask, v,
	                    in + (int)delta >= width ? lane : lane + (int)delta, line, file);
}
template <class T>
EMU_INLINE T emu_shfl_xor(unsigned mask, T v, int bits, int width, int line, const char *file)
{
	int lane = (int)__laneid(), to = lane ^ bits;
	/* out of the lane's own segment upwards: its own value */
	return emu_exchange(EMU_WARP_SHFL_XOR, mask, v, to > (lane | (width - 1)) ? lane : to, line, file);
}

#define EMU_SHFL(T) \
	EMU_INLINE T __shfl_sync(unsigned mask, T v, int source, int width = 32, EMU_LINE_ARGS) \
	{ \
		return emu_shfl(mask, v, source, width, line, file); \
	} \
	EMU_INLINE T __shfl_up_sync(unsigned mask, T v, unsigned delta, int width = 32, EMU_LINE_ARGS) \
	{ \
		return emu_shfl_up(mask, v, delta, width, line, file); \
	} \
	EMU_INLINE T __shfl_down_sync(unsigned mask, T v, unsigned delta, int width = 32, \
	                              EMU_LINE_ARGS) \
	{ \
		return emu_shfl_down(mask, v, delta, width, line, file); \
	} \
	EMU_INLINE T __shfl_xor_sync(unsigned mask, T v, int bits, int width = 32, EMU_LINE_ARGS) \
	{ \
		return emu_shfl_xor(mask, v, bits, width, line, file); \
	}
EMU_SHFL(int)
EMU_SHFL(unsigned)
EMU_SHFL(long)
EMU_SHFL(unsigned long)
EMU_SHFL(long long)
EMU_SHFL(unsigned long long)
EMU_SHFL(float)
EMU_SHFL(double)

template <class T> EMU_INLINE unsigned long long emu_wide(T v)
{
	unsigned long long w = 0;
	__builtin_memcpy(&w, &v, sizeof v);
	return w;
}
#define EMU_MATCH(T) \
	EMU_INLINE unsigned __match_any_sync(unsigned mask, T v, EMU_LINE_ARGS) \
	{ \
		return (unsigned)emu_warp(EMU_WARP_MATCH_ANY, mask, emu_wide(v), 0, line, file); \
	} \
	EMU_INLINE unsigned __match_all_sync(unsigned mask, T v, int *same, EMU_LINE_ARGS) \
	{ \
		unsigned r = (unsigned)emu_warp(EMU_WARP_MATCH_ALL, mask, emu_wide(v), 0, line, file); \
		*same = r != 0; \
		return r; \
	}
EMU_MATCH(int)
EMU_MATCH(unsigned)
EMU_MATCH(long)
EMU_MATCH(unsigned long)
EMU_MATCH(long long)
EMU_MATCH(unsigned long long)
EMU_MATCH(float)
EMU_MATCH(double)
#undef EMU_MATCH

#define EMU_REDUCE(name, T, kind) \
	EMU_INLINE T name(unsigned mask, T v, EMU_LINE_ARGS) \
	{ \
		return (T)(unsigned)emu_warp(kind, mask, (unsigned)v, 0, line, file); \
	}
EMU_REDUCE(__reduce_add_sync, unsigned, EMU_WARP_ADD)
EMU_REDUCE(__reduce_add_sync, int, EMU_WARP_ADD)
EMU_REDUCE(__reduce_min_sync, unsigned, EMU_WARP_MIN_U)
EMU_REDUCE(__reduce_min_sync, int, EMU_WARP_MIN_S)
EMU_REDUCE(__reduce_max_sync, unsigned, EMU_WARP_MAX_U)
EMU_REDUCE(__reduce_max_sync, int, EMU_WARP_MAX_S)
EMU_REDUCE(__reduce_and_sync, unsigned, EMU_WARP_AND)
EMU_REDUCE(__reduce_or_sync, unsigned, EMU_WARP_OR)
EMU_REDUCE(__reduce_xor_sync, unsigned, EMU_WARP_XOR)
#undef EMU_REDUCE

#endif
