/* Comes before every emulated kernel: CUDA C device language for a plain C++17 compiler.
 *
 * SPDX-License-Identifier: MIT
 *
 * Uses no header of the host: a candidate sees only what CUDA declares, and a call to
 * anything else does not compile or leaves an undefined symbol that elfscan lists.
 */
#ifndef EMU_PREFIX_H
#define EMU_PREFIX_H
#include "stddef.h"
#include "stdint.h"
#include "emu_abi.h"
#include "emu_core.h"
#include "emu_types.h"
#include "emu_math.h"
#include "emu_intrin.h"
#include "emu_atomic.h"
#include "emu_warp.h"

/* No build is to be told from another: what the sanitizers see is what is timed. */
#undef __SANITIZE_ADDRESS__
#undef __SANITIZE_THREAD__

/* Inline PTX cannot run here: the compiler then names this identifier. */
#define asm emu_not_emulable_inline_ptx
#define __asm__ emu_not_emulable_inline_ptx
#define __asm emu_not_emulable_inline_ptx
#endif
