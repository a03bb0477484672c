/*
 * tensor.c - tensor maps of the fake driver: the rules that an H200's driver applied
 * (tests/gpu/truth/README.md). No kernel here reads one.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fake.h"

#include <string.h>

static const unsigned sizes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4}; /* by CUtensorMapDataType */
static int is_float(int type)
{
	return type >= 6 && type <= 12;
}

static int dims_bad(int rank, unsigned element, const uint64_t *dims, const uint64_t *strides, const uint32_t *box,
		    const uint32_t *steps)
{
	(void)element;
	for (int i = 0; i < rank; i++)
		if (dims[i] == 0 || dims[i] > (1ull << 32) || box[i] == 0 || box[i] > 256 || steps[i] == 0 ||
		    steps[i] > 8)
			return 1;
	for (int i = 0; i + 1 < rank; i++)
		if (strides[i] % 16 || strides[i] >= (1ull << 40))
			return 1;
	return 0;
}

CUresult cuTensorMapEncodeTiled(CUtensorMap *map, int type, uint32_t rank, void *at, const uint64_t *dims,
				const uint64_t *strides, const uint32_t *box, const uint32_t *steps, int interleave,
				int swizzle, int l2, int nan)
{
	static const unsigned most[] = {0, 32, 64, 128};
	if (!map || (uintptr_t)map % 64 || type < 0 || (size_t)type >= sizeof sizes / sizeof *sizes || rank < 1 ||
	    rank > 5 || (uintptr_t)at % 16 || interleave < 0 || interleave > 2 || (interleave && rank < 3) ||
	    swizzle < 0 || swizzle > 3 || l2 < 0 || l2 > 3 || nan < 0 || nan > 1 || (nan && !is_float(type)))
		return CUDA_INVALID_VALUE;
	unsigned element = sizes[type], inner;
	if (dims_bad((int)rank, element, dims, strides, box, steps))
		return CUDA_INVALID_VALUE;
	inner = box[0] * element;
	if (inner % 16 || (most[swizzle] && inner > most[swizzle]))
		return CUDA_INVALID_VALUE;
	memset(map, 0, sizeof *map);
	map->opaque[0] = (uint64_t)(uintptr_t)at;
	map->opaque[1] = (uint64_t)rank << 8 | (uint64_t)type;
	memcpy(&map->opaque[2], dims, rank * sizeof *dims);
	memcpy(&map->opaque[7], strides, (rank - 1) * sizeof *strides);
	return 0;
}
