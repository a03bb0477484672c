/* What a parent and an emulated kernel image say to each other.
 *
 * SPDX-License-Identifier: MIT
 *
 * An image is one candidate linked with the emulator runtime. The parent starts it as
 *     image --fd-in 3 --fd-out 4
 * with five open descriptors: commands (fd-in), replies (fd-out), and three memfds at fixed
 * numbers: EMU_FD_RO (inputs, opened read-only), EMU_FD_RW (outputs, workspaces),
 * EMU_FD_SCRIPT (the launch script, read-only). It uses nothing else.
 *
 * Life cycle: MAP once per script, RUN any number of times, QUIT. After WIPE the image is as it
 * was after MAP, except for the buffers and for the values of arguments, which are those of MAP:
 * send it between runs, once the outputs have been looked at and before new inputs exist. One
 * reply per command, followed by `text_bytes` of report and `log_bytes` of captured printf
 * output. A reply that
 * is not EMU_OK is the last one: the image exits with code 1 after it. End of file without
 * a reply means that the image died (crash, seccomp, limit): the parent decides what that is.
 *
 * The script is one block of bytes: header, buffers, zeros, launches, args, back to back.
 * All numbers are little endian in the machine's own layout; both sides run on one machine.
 * Sizes are in bytes. The image trusts nothing: every index and range is checked at MAP.
 */
#ifndef EMU_PROTOCOL_H
#define EMU_PROTOCOL_H

#include <stdint.h>

#define EMU_MAGIC 0x754d4554u /* "TEMu" */
#define EMU_VERSION 1u

enum { EMU_FD_RO = 5, EMU_FD_RW = 6, EMU_FD_SCRIPT = 7 };

enum {
	EMU_MAX_BUFFERS = 256,
	EMU_MAX_LAUNCHES = 4096,
	EMU_MAX_ZEROS = 256,
	EMU_MAX_ARGS = 65536,
	EMU_MAX_ARG_BYTES = 128,
	EMU_MAX_RESIDENCY = 1024,
	EMU_MAX_SHARED = 228 * 1024,
	EMU_MAX_TEXT = 4096,
	EMU_MAX_LOG = 4096,
	EMU_MAX_SCRIPT = 1 << 26
};

/* A range of one memfd at a fixed address, so that both arms of a comparison see the same
 * addresses. offset and base must agree modulo 4096; a buffer owns the whole pages it
 * touches. Place the end of a buffer at the end of a page to have the first byte behind it
 * fault even without the sanitize build. Bases from 0x3000000000 up to 0x7000000000 are
 * never used by the runtime itself. */
enum {
	EMU_BUFFER_WRITABLE = 1, /* an input that kernels may change: only tests of the judge ask for it */
};

struct emu_buffer {
	uint32_t fd;	/* EMU_FD_RO or EMU_FD_RW */
	uint32_t flags; /* EMU_BUFFER_* */
	uint64_t offset;
	uint64_t bytes;
	uint64_t base;
};

/* Workspace bytes cleared at the start of every RUN, inside the timed window. */
struct emu_zero {
	uint32_t buffer;
	uint32_t reserved;
	uint64_t offset;
	uint64_t bytes;
};

enum { EMU_ARG_VALUE = 0, EMU_ARG_POINTER = 1 };

struct emu_arg {
	uint32_t kind;
	uint32_t bytes;	 /* size of the parameter; 8 for a pointer */
	uint32_t buffer; /* pointer: index of a buffer */
	uint32_t reserved;
	uint64_t offset; /* pointer: bytes from its base, up to and including its size */
	uint8_t value[EMU_MAX_ARG_BYTES];
};

enum { EMU_LAUNCH_COOPERATIVE = 1 };

struct emu_launch {
	uint32_t entry; /* index in the generated EMU_ENTRY list */
	uint32_t grid[3];
	uint32_t block[3];
	uint32_t cluster[3];   /* 1,1,1, or the launch is not emulable */
	uint32_t shared_bytes; /* dynamic shared memory */
	uint32_t flags;
	uint32_t first_arg, n_args;
};

enum {
	/* accept threads of a block at different __syncthreads() lines, as the hardware does */
	EMU_SCRIPT_MIXED_BARRIERS = 1
};

struct emu_script {
	uint32_t magic, version;
	uint32_t bytes; /* of the whole script */
	uint32_t flags; /* EMU_SCRIPT_* */
	uint32_t n_buffers, n_zeros, n_launches, n_args;
	uint32_t sm_count;
	uint32_t residency;  /* blocks resident at once, 1..EMU_MAX_RESIDENCY */
	uint32_t max_shared; /* static + dynamic bytes of one block, <= EMU_MAX_SHARED */
	uint32_t stall_ms;   /* CPU time without any thread or barrier finishing; 0: 5000 */
	uint32_t limit_ms;   /* wall time of one RUN; 0: none (the parent has its own) */
	uint32_t stack_kib;  /* of one thread, 16..4096; 0: 64, or 256 in the checking builds */
};

enum { EMU_CMD_MAP = 1, EMU_CMD_RUN = 2, EMU_CMD_QUIT = 3, EMU_CMD_WIPE = 4 };
enum {
	/* RUN: read the script's arguments again, whose values may have changed and nothing else.
	 * Cheap enough to be timed, which a MAP is not. */
	EMU_COMMAND_ARGS = 1,
	/* RUN: a block finds in its shared memory what the one before it left, as on a GPU. Only for
	 * the zoo, which shows what a kernel could do with it. */
	EMU_COMMAND_SHARED_AS_IS = 2
};
enum { EMU_ORDER_FORWARD = 0, EMU_ORDER_REVERSE = 1, EMU_ORDER_SHUFFLE = 2 };

struct emu_command {
	uint32_t magic;
	uint32_t kind;
	uint32_t order; /* threads of a block; blocks within windows of `residency` */
	uint32_t flags; /* EMU_COMMAND_* */
	uint64_t order_seed;
	uint64_t poison_seed; /* pattern of shared memory at block start */
};

enum {
	EMU_OK = 0,
	EMU_FAULT_SEGV = 1, /* bad address, write to an input, stack overflow */
	EMU_FAULT_FPE = 2,
	EMU_SANITIZER = 3, /* out of bounds or undefined behaviour, sanitize build only */
	EMU_BARRIER_DIVERGENCE = 4,
	EMU_DEADLOCK = 5,
	EMU_NOT_EMULABLE = 6,
	EMU_RACE = 7, /* race build only */
	EMU_BAD_SCRIPT = 8,
	EMU_TRAP = 9,	    /* __trap(), assert() */
	EMU_TIME_LIMIT = 10, /* limit_ms passed */
	EMU_BAD_STATE = 11   /* WIPE: data was changed that no launch changes */
};

struct emu_reply {
	uint32_t magic;
	uint32_t status;
	uint32_t launch; /* index; UINT32_MAX where none */
	uint32_t block[3];
	uint32_t thread[3];
	uint32_t line;		 /* in kernel.cu; 0 unknown */
	uint32_t text_bytes;	 /* <= EMU_MAX_TEXT, follow the reply */
	uint32_t log_bytes;	 /* <= EMU_MAX_LOG, follow the text */
	uint32_t notes;		 /* findings that are not errors (integer overflow, wide shift) */
	uint32_t log_dropped;	 /* 1: printf output was cut */
	uint64_t switches;	 /* fiber switches of this RUN */
	uint64_t block_switches; /* changes between resident blocks */
};

#endif
