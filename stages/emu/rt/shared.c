/* Shared memory of resident blocks: one address for all, contents exchanged on a change.
 *
 * SPDX-License-Identifier: MIT
 *
 * __shared__ is thread_local, and there is one OS thread. The candidate's part of the
 * thread-local block begins at emu_tls_begin; dynamic shared memory is its end. Blocks that
 * never wait for each other run one after another and never pay for a copy.
 */
#include "rt.h"
#include <string.h>

static void shared_poison(char *p, size_t n)
{
	uint64_t w = emu_g.poison;
	size_t i = 0;
	for (; i + 8 <= n; i += 8)
		memcpy(p + i, &w, 8);
	memcpy(p + i, &w, n - i);
}

void shared_enter(struct block *b)
{
	struct block *owner = emu_g.image_owner;
	size_t n = emu_g.shared_bytes;
	if (owner == b || n == 0)
		return;
	if (owner) {
		memcpy(owner->image, emu_tls_begin, n);
		owner->image_state = IMAGE_SAVED;
	}
	if (b->image_state == IMAGE_NEW && !emu_g.shared_as_is)
		shared_poison(emu_tls_begin, n);
	else if (b->image_state != IMAGE_NEW)
		memcpy(emu_tls_begin, b->image, n);
	emu_g.image_owner = b;
}
