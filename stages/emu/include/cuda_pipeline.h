/* The pipeline primitives: copies from global to shared memory that a thread waits for.
 *
 * SPDX-License-Identifier: MIT
 *
 * A copy happens when it is waited for, the latest moment that the language allows.
 */
#ifndef EMU_CUDA_PIPELINE_H
#define EMU_CUDA_PIPELINE_H

EMU_INLINE void
__pipeline_memcpy_async(void *to, const void *from, size_t bytes, size_t zero = 0)
{
	emu_copy_async(to, from, (unsigned)bytes, (unsigned)zero);
}
EMU_INLINE void __pipeline_commit() { emu_copy_commit(); }
EMU_INLINE void __pipeline_wait_prior(size_t pending) { emu_copy_wait((unsigned)pending); }

#endif
