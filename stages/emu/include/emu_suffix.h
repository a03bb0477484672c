/* Comes after every emulated kernel: a loop over threads for each entry.
 *
 * SPDX-License-Identifier: MIT
 *
 * The wrapper names its entries before it includes this file:
 *     #define EMU_ENTRIES EMU_ENTRY(scan) EMU_ENTRY(add<float>)
 */
#ifndef EMU_SUFFIX_H
#define EMU_SUFFIX_H

/* A candidate's macros (T, n, next) reach to here: every name below is reserved, a keyword or a member that
 * emu_core.h reaches for us. */
#undef printf
#undef alignas
#undef asm
#undef __asm__
#undef __asm

template <class emu_T> struct emu_bare { typedef emu_T emu_type; };
template <class emu_T> struct emu_bare<const emu_T> { typedef emu_T emu_type; };
template <class emu_T> struct emu_bare<emu_T &> { typedef emu_T emu_type; };
template <class emu_T> struct emu_bare<const emu_T &> { typedef emu_T emu_type; };

typedef unsigned emu_words __attribute__((__vector_size__(16), __may_alias__));

/* emu_thread, to be written: the kernel reads it as a constant, so the store is volatile, or it
 * would look useless */
extern "C" volatile emu_words emu_thread_words __asm__("emu_thread");

template <auto emu_kernel> struct emu_caller;

template <class... emu_P, void (*emu_kernel)(emu_P...)> struct emu_caller<emu_kernel> {
	static constexpr unsigned emu_n = sizeof...(emu_P);
	static constexpr unsigned emu_bytes[emu_n + 1] = {(unsigned)sizeof(emu_P)..., 0};

	/* As long as no thread of the block is parked, the position in the order is ours alone: what
	 * was stored is not read again. Once one was, the runtime gives out the threads. */
	static inline __attribute__((__always_inline__)) void
	emu_loop(typename emu_bare<emu_P>::emu_type... emu_p)
	{
		emu_hot_busy(1);
		const emu_slot *emu_s = emu_hot_next(), *emu_last = emu_hot_end();
		for (;; emu_hot_busy(1)) {
			if (__builtin_expect(emu_hot_slow(), 0)) {
				if (!emu_take_slow())
					return;
			} else {
				if (emu_s == emu_last)
					return;
				emu_thread_words = *(const emu_words *)emu_s;
				emu_hot_take(++emu_s);
			}
			emu_hot_busy(0);
			emu_kernel(emu_p...);
		}
	}

	template <int... emu_i> struct emu_indices {};

	static void
	emu_threads(void *const *emu_args)
	{
		emu_run(emu_args, emu_indices<__integer_pack(emu_n)...>());
	}

	template <int... emu_i> static inline __attribute__((__always_inline__)) void
	emu_run(void *const *emu_args, emu_indices<emu_i...>)
	{
		(void)emu_args;
		emu_loop(*(typename emu_bare<emu_P>::emu_type *)emu_args[emu_i]...);
	}
};

/* elfscan reads the names from their section */
#define EMU_ENTRY(...) #__VA_ARGS__ "\0"
extern const char emu_entry_names[] __attribute__((__section__("emu_names")));
const char emu_entry_names[] = EMU_ENTRIES "";
#undef EMU_ENTRY

#define EMU_ENTRY(...) \
	{#__VA_ARGS__, &emu_caller<&__VA_ARGS__>::emu_threads, emu_caller<&__VA_ARGS__>::emu_bytes, \
	 emu_caller<&__VA_ARGS__>::emu_n},
extern "C" {
extern const emu_entry emu_entries[] = {EMU_ENTRIES{nullptr, nullptr, nullptr, 0}};
extern const unsigned emu_n_entries = sizeof emu_entries / sizeof *emu_entries - 1;
/* keeps the symbol that elfscan gives to dynamic shared arrays */
char *emu_dynamic_shared_start();
char *
emu_dynamic_shared_start()
{
	return emu_dynamic_shared;
}
}
#undef EMU_ENTRY

#endif
