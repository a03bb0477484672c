/* The seam between a candidate's translation unit (C++) and the runtime (C).
 *
 * SPDX-License-Identifier: MIT
 *
 * Both sides include this file, so that neither can drift. Names begin with emu_ and are
 * reserved: guard refuses a candidate that defines one.
 */
#ifndef EMU_ABI_H
#define EMU_ABI_H

#ifdef __cplusplus
extern "C" {
#endif

struct emu_u3 {
	unsigned x, y, z;
};

/* One thread of a block in the order in which threads are started. */
struct emu_slot {
	unsigned x, y, z;
	unsigned lin; /* x + dim.x * (y + dim.y * z) */
} __attribute__((aligned(16)));

/* What the trampoline's loop touches for every thread. `busy` is 1 whenever the runtime
 * runs: the preemption timer then leaves it alone. */
struct emu_hot {
	const struct emu_slot *next, *end;
	struct emu_slot *thread; /* the running one: what threadIdx reads */
	volatile int busy;
	int slow; /* a thread of this block has been parked: account for each one */
	int spin; /* atomics that change nothing left before a yield */
};
extern struct emu_hot emu_hot;

/* One row of the table that emu_suffix.h makes from the EMU_ENTRY list. */
struct emu_entry {
	const char *name;
	void (*threads)(void *const *args);
	const unsigned *param_bytes;
	unsigned n_params;
};
extern const struct emu_entry emu_entries[];
extern const unsigned emu_n_entries;

enum emu_barrier_kind { EMU_BAR_PLAIN, EMU_BAR_COUNT, EMU_BAR_AND, EMU_BAR_OR };

enum emu_warp_kind {
	EMU_WARP_SYNC,
	EMU_WARP_SHFL_IDX,
	EMU_WARP_SHFL_UP,
	EMU_WARP_SHFL_DOWN,
	EMU_WARP_SHFL_XOR,
	EMU_WARP_BALLOT,
	EMU_WARP_MATCH_ANY,
	EMU_WARP_MATCH_ALL,
	EMU_WARP_ADD,
	EMU_WARP_MIN_S,
	EMU_WARP_MAX_S,
	EMU_WARP_MIN_U,
	EMU_WARP_MAX_U,
	EMU_WARP_AND,
	EMU_WARP_OR,
	EMU_WARP_XOR
};

enum emu_spin_cost { EMU_SPIN_BUDGET = 64, EMU_SPIN_FENCE = 4 };

int emu_take_slow(void);
int emu_barrier(int kind, int predicate, int line, const char *file);
void emu_grid_sync(int line, const char *file);
unsigned long long emu_warp(int kind, unsigned mask, unsigned long long value, unsigned source,
                            int line, const char *file);
unsigned emu_activemask(int line, const char *file);
void emu_yield(void);
void emu_spun(void);
void emu_fence(void);
void emu_trap(const char *what, int line, const char *file) __attribute__((noreturn));
void emu_not_emulable(const char *what, int line, const char *file) __attribute__((noreturn));
int emu_printf(const char *format, ...) __attribute__((format(printf, 1, 2)));
void emu_copy_async(void *to, const void *from, unsigned bytes, unsigned zero);
void emu_copy_commit(void);
void emu_copy_wait(unsigned pending);
unsigned emu_fact(int which); /* EMU_FACT_* */
unsigned long long emu_clock(void);

enum emu_fact_name { EMU_FACT_SM_COUNT, EMU_FACT_DYNAMIC_SHARED, EMU_FACT_TOTAL_SHARED, EMU_FACT_SMID };

#ifdef __cplusplus
}
#endif
#endif
