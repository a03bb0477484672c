/* One key after another: the lanes that hold it form a group, whose leader adds its size. */
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

extern "C" __global__ void clear(int *count, int keys)
{
	if ((int)threadIdx.x < keys)
		count[threadIdx.x] = 0;
}

extern "C" __global__ void count_present(const int *x, int *count, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i >= n)
		return;
	int key = x[i];
	if (key % 2) {
		cg::coalesced_group odd = cg::coalesced_threads();
		cg::coalesced_group same = cg::labeled_partition(odd, key);
		if (same.thread_rank() == 0)
			atomicAdd(&count[key], (int)same.size());
	} else {
		atomicAdd(&count[key], 1);
	}
}
