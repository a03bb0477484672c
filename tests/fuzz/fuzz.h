/*
 * fuzz.h - what every fuzz target defines: the entry point that libFuzzer and replay.c call.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_FUZZ_H
#define TS_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A property that must hold whatever the input. */
#define MUST(x)              \
	do {                 \
		if (!(x))    \
			abort(); \
	} while (0)

#endif
