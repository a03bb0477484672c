/* Atomic operations of all widths; scopes are one.
 *
 * SPDX-License-Identifier: MIT
 *
 * There is one OS thread, and a fiber is only ever taken away between two instructions: a
 * read-modify-write instruction is atomic without the bus lock. An operation that changes
 * nothing (a failed compare, an exchange of equal values, adding 0) is how kernels wait; 64
 * of those give the other threads a turn.
 */
#ifndef EMU_ATOMIC_H
#define EMU_ATOMIC_H

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define EMU_PLAIN_RMW 1
#endif

EMU_INLINE void emu_idle()
{
	if (__builtin_expect(--emu_hot.spin <= 0, 0))
		emu_spun();
}

template <class T> EMU_INLINE T emu_cas(T *p, T expected, T desired)
{
	typedef typename emu_word<sizeof(T)>::type W;
	typedef W __attribute__((may_alias)) A;
	W e, d;
	__builtin_memcpy(&e, &expected, sizeof e);
	__builtin_memcpy(&d, &desired, sizeof d);
#ifdef EMU_PLAIN_RMW
	__asm__ volatile("cmpxchg %2, %1" : "+a"(e), "+m"(*(A *)p) : "r"(d) : "memory", "cc");
#else
	__atomic_compare_exchange_n((A *)p, &e, d, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
#endif
	T r;
	__builtin_memcpy(&r, &e, sizeof r);
	return r;
}

template <class T> EMU_INLINE bool emu_equal(T a, T b)
{
	typename emu_word<sizeof(T)>::type x, y;
	__builtin_memcpy(&x, &a, sizeof x);
	__builtin_memcpy(&y, &b, sizeof y);
	return x == y;
}

template <class T> EMU_INLINE T emu_fetch_add(T *p, T v)
{
#ifdef EMU_PLAIN_RMW
	T r = v;
	__asm__ volatile("xadd %0, %1" : "+r"(r), "+m"(*p) : : "memory", "cc");
#else
	T r = __atomic_fetch_add(p, v, __ATOMIC_SEQ_CST);
#endif
	if (v == 0)
		emu_idle();
	return r;
}

/* new value from the old one, until nobody was in between */
#define EMU_UPDATE(T, expression) \
	T old = emu_load_now(p); \
	for (;;) { \
		T now = (expression); \
		T was = emu_cas(p, old, now); \
		if (emu_equal(was, old)) { \
			if (emu_equal(old, now)) \
				emu_idle(); \
			return old; \
		} \
		old = was; \
	}

#define EMU_ATOMIC2(name, T, expression) \
	EMU_INLINE T name(T *p, T v) { expression } \
	EMU_INLINE T name##_block(T *p, T v) { return name(p, v); } \
	EMU_INLINE T name##_system(T *p, T v) { return name(p, v); }

#define EMU_ADD(T) EMU_ATOMIC2(atomicAdd, T, return emu_fetch_add(p, v);)
EMU_ADD(int)
EMU_ADD(unsigned)
EMU_ADD(unsigned long long)
#undef EMU_ADD
EMU_ATOMIC2(atomicAdd, float, EMU_UPDATE(float, old + v))
EMU_ATOMIC2(atomicAdd, double, EMU_UPDATE(double, old + v))
EMU_ATOMIC2(atomicSub, int, return emu_fetch_add(p, (int)(0u - (unsigned)v));)
EMU_ATOMIC2(atomicSub, unsigned, return emu_fetch_add(p, 0u - v);)

#define EMU_BITS(T) \
	EMU_ATOMIC2(atomicAnd, T, EMU_UPDATE(T, old & v)) \
	EMU_ATOMIC2(atomicOr, T, EMU_UPDATE(T, old | v)) \
	EMU_ATOMIC2(atomicXor, T, EMU_UPDATE(T, old ^ v))
EMU_BITS(int)
EMU_BITS(unsigned)
EMU_BITS(unsigned long long)
#undef EMU_BITS

#define EMU_ORDER(T) \
	EMU_ATOMIC2(atomicMin, T, EMU_UPDATE(T, v < old ? v : old)) \
	EMU_ATOMIC2(atomicMax, T, EMU_UPDATE(T, v > old ? v : old))
EMU_ORDER(int)
EMU_ORDER(unsigned)
EMU_ORDER(long long)
EMU_ORDER(unsigned long long)
#undef EMU_ORDER

#define EMU_EXCHANGE(T) EMU_ATOMIC2(atomicExch, T, EMU_UPDATE(T, v))
EMU_EXCHANGE(int)
EMU_EXCHANGE(unsigned)
EMU_EXCHANGE(unsigned long long)
EMU_EXCHANGE(float)
EMU_EXCHANGE(double)
#undef EMU_EXCHANGE

EMU_ATOMIC2(atomicInc, unsigned, EMU_UPDATE(unsigned, old >= v ? 0u : old + 1u))
EMU_ATOMIC2(atomicDec, unsigned, EMU_UPDATE(unsigned, old == 0 || old > v ? v : old - 1u))

#define EMU_CAS(T) \
	EMU_INLINE T atomicCAS(T *p, T compare, T v) \
	{ \
		T was = emu_cas(p, compare, v); \
		if (!emu_equal(was, compare) || emu_equal(was, v)) \
			emu_idle(); \
		return was; \
	} \
	EMU_INLINE T atomicCAS_block(T *p, T compare, T v) { return atomicCAS(p, compare, v); } \
	EMU_INLINE T atomicCAS_system(T *p, T compare, T v) { return atomicCAS(p, compare, v); }
EMU_CAS(int)
EMU_CAS(unsigned)
EMU_CAS(unsigned long long)
EMU_CAS(unsigned short)
#undef EMU_CAS

#endif
