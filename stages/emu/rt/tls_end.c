/* Object behind the candidate: dynamic shared memory ends its thread-local block.
 *
 * SPDX-License-Identifier: MIT
 *
 * elfscan renames every `extern __shared__ T x[]` of the candidate to this symbol.
 */
#include "../protocol.h"

_Alignas(1024) _Thread_local char emu_dynamic_shared[EMU_MAX_SHARED];
