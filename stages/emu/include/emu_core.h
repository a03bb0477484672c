/* Keywords, built-in variables, barriers, fences.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef EMU_CORE_H
#define EMU_CORE_H

#define __global__ __attribute__((noinline, noclone))
#define __device__
#define __host__
#define __managed__
#define __shared__ thread_local
#define EMU_STRING_(x) #x
#define EMU_STRING(x) EMU_STRING_(x)
/* a section of its own for each variable: const and other ones may not share one */
#define __constant__ __attribute__((section("emu_constant." EMU_STRING(__COUNTER__))))
#define __grid_constant__
/* without `inline`: candidates add their own, and twice is an error here */
#define __forceinline__ __attribute__((always_inline))
#define __inline_hint__ inline
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __maxnreg__(n)
#define __block_size__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_align__(n) __attribute__((aligned(n)))
#define __restrict __restrict__
/* the standard form may not follow __shared__, the attribute may */
#define alignas(n) __attribute__((aligned(n)))
#define __CUDACC__ 1
#define __CUDA_ARCH__ 900
#define __CUDACC_VER_MAJOR__ 12
#define __CUDACC_VER_MINOR__ 8
#define CUDART_VERSION 12080
#define CUDA_VERSION 12080

#define EMU_LINE_ARGS int line = __builtin_LINE(), const char *file = __builtin_FILE()
#define EMU_INLINE inline __attribute__((always_inline))

struct uint3 {
	unsigned x, y, z;
};

struct dim3 {
	unsigned x, y, z;
	constexpr dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}
	constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
	constexpr operator uint3() const { return uint3{x, y, z}; }
};

/* Constant for the time of one kernel call, so that the compiler may keep them: the kernel
 * is never inlined into the loop that changes them. */
extern "C" {
extern const struct emu_here {
	uint3 idx;
	unsigned lin;
} emu_thread;
extern const uint3 emu_blockIdx;
extern const dim3 emu_blockDim, emu_gridDim;
}
#define threadIdx emu_thread.idx
#define blockIdx emu_blockIdx
#define blockDim emu_blockDim
#define gridDim emu_gridDim
static constexpr int warpSize = 32;

/* what elfscan renames every dynamic shared array to */
extern "C" thread_local char emu_dynamic_shared[];

EMU_INLINE void __syncthreads(EMU_LINE_ARGS)
{
	emu_barrier(EMU_BAR_PLAIN, 0, line, file);
}
EMU_INLINE int __syncthreads_count(int predicate, EMU_LINE_ARGS)
{
	return emu_barrier(EMU_BAR_COUNT, predicate, line, file);
}
EMU_INLINE int __syncthreads_and(int predicate, EMU_LINE_ARGS)
{
	return emu_barrier(EMU_BAR_AND, predicate, line, file);
}
EMU_INLINE int __syncthreads_or(int predicate, EMU_LINE_ARGS)
{
	return emu_barrier(EMU_BAR_OR, predicate, line, file);
}

EMU_INLINE void __threadfence() { emu_fence(); }
EMU_INLINE void __threadfence_block() { emu_fence(); }
EMU_INLINE void __threadfence_system() { emu_fence(); }
EMU_INLINE void __nanosleep(unsigned) { emu_yield(); }

EMU_INLINE void __trap(EMU_LINE_ARGS) { emu_trap("__trap()", line, file); }
EMU_INLINE void __brkpt() {}
EMU_INLINE void __prof_trigger(int) {}
EMU_INLINE void __assume(bool x) { if (!x) __builtin_unreachable(); }
#define __builtin_assume(x) do { if (!(x)) __builtin_unreachable(); } while (0)
#undef assert
#ifdef NDEBUG
#define assert(x) ((void)0)
#else
#define assert(x) \
	((x) ? (void)0 : emu_trap("assertion '" #x "' failed", __builtin_LINE(), __builtin_FILE()))
#endif
#define printf emu_printf

EMU_INLINE long long clock64() { return (long long)emu_clock(); }
EMU_INLINE long clock() { return (long)emu_clock(); }
EMU_INLINE unsigned long long __globaltimer() { return emu_clock(); }
EMU_INLINE unsigned __smid() { return emu_fact(EMU_FACT_SMID); }
EMU_INLINE unsigned __nsmid() { return emu_fact(EMU_FACT_SM_COUNT); }
EMU_INLINE unsigned __laneid()
{
	return emu_thread.lin & 31u;
}

EMU_INLINE bool __isGlobal(const void *p)
{
	unsigned long long a = (unsigned long long)p;
	return a >= 0x3000000000ull && a < 0x7000000000ull;
}
EMU_INLINE bool __isShared(const void *p)
{
	const char *end = emu_dynamic_shared + emu_fact(EMU_FACT_DYNAMIC_SHARED);
	return (const char *)p < end && (const char *)p >= end - emu_fact(EMU_FACT_TOTAL_SHARED);
}
EMU_INLINE size_t __cvta_generic_to_shared(const void *p)
{
	return (size_t)((const char *)p - (emu_dynamic_shared + emu_fact(EMU_FACT_DYNAMIC_SHARED) -
	                                   emu_fact(EMU_FACT_TOTAL_SHARED)));
}
EMU_INLINE size_t __cvta_generic_to_global(const void *p) { return (size_t)p; }

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define EMU_CHECKED(name) __asm__("emu_" #name)
#else
#define EMU_CHECKED(name)
#endif
extern "C" {
void *memcpy(void *, const void *, size_t) noexcept EMU_CHECKED(memcpy);
void *memmove(void *, const void *, size_t) noexcept EMU_CHECKED(memmove);
void *memset(void *, int, size_t) noexcept EMU_CHECKED(memset);
int memcmp(const void *, const void *, size_t) noexcept;
}

/* For emu_suffix.h, where names of members may be macros of the kernel. */
EMU_INLINE void emu_hot_busy(int v) { emu_hot.busy = v; }
EMU_INLINE const emu_slot *emu_hot_next() { return emu_hot.next; }
EMU_INLINE const emu_slot *emu_hot_end() { return emu_hot.end; }
EMU_INLINE int emu_hot_slow() { return emu_hot.slow; }
EMU_INLINE void emu_hot_take(const emu_slot *s) { emu_hot.next = s; }

#endif
