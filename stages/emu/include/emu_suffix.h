/* Comes after every emulated kernel: a loop over threads for each entry.
 *
 * SPDX-License-Identifier: MIT
 *
 * The wrapper names its entries before it includes this file:
 *     #define EMU_ENTRIES EMU_ENTRY(scan) EMU_ENTRY(add<float>)
 */
#ifndef EMU_SUFFIX_H
#define EMU_SUFFIX_H

#undef printf
#undef alignas
#undef asm
#undef __asm__
#undef __asm

template <class T> struct emu_bare { typedef T type; };
template <class T> struct emu_bare<const T> { typedef T type; };
template <class T> struct emu_bare<T &> { typedef T type; };
template <class T> struct emu_bare<const T &> { typedef T type; };

typedef unsigned emu_words __attribute__((vector_size(16), may_alias));

/* emu_thread, to be written: the kernel reads it as a constant, so the store is volatile, or it
 * would look useless */
extern "C" volatile emu_words emu_thread_words __asm__("emu_thread");

template <auto kernel> struct emu_caller;

template <class... P, void (*kernel)(P...)> struct emu_caller<kernel> {
	static constexpr unsigned n = sizeof...(P);
	static constexpr unsigned bytes[n + 1] = {(unsigned)sizeof(P)..., 0};

	/* As long as no thread of the block is parked, the position in the order is ours alone: what
	 * was stored is not read again. Once one was, the runtime gives out the threads. */
	static inline __attribute__((always_inline)) void
	loop(typename emu_bare<P>::type... p)
	{
		emu_hot.busy = 1;
		const emu_slot *s = emu_hot.next, *end = emu_hot.end;
		for (;; emu_hot.busy = 1) {
			if (__builtin_expect(emu_hot.slow, 0)) {
				if (!emu_take_slow())
					return;
			} else {
				if (s == end)
					return;
				emu_thread_words = *(const emu_words *)s;
				emu_hot.next = ++s;
			}
			emu_hot.busy = 0;
			kernel(p...);
		}
	}

	template <int... i> struct indices {};

	static void
	threads(void *const *args)
	{
		run(args, indices<__integer_pack(n)...>());
	}

	template <int... i> static inline __attribute__((always_inline)) void
	run(void *const *args, indices<i...>)
	{
		(void)args;
		loop(*(typename emu_bare<P>::type *)args[i]...);
	}
};

/* elfscan reads the names from their section */
#define EMU_ENTRY(...) #__VA_ARGS__ "\0"
extern const char emu_entry_names[] __attribute__((section("emu_names")));
const char emu_entry_names[] = EMU_ENTRIES "";
#undef EMU_ENTRY

#define EMU_ENTRY(...) \
	{#__VA_ARGS__, &emu_caller<&__VA_ARGS__>::threads, emu_caller<&__VA_ARGS__>::bytes, \
	 emu_caller<&__VA_ARGS__>::n},
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
