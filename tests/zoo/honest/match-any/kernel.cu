/* Lanes with the same key find each other; the lowest counts for all. */
extern "C" __global__ void clear(int *count, int keys)
{
	if ((int)threadIdx.x < keys)
		count[threadIdx.x] = 0;
}

extern "C" __global__ void count_groups(const int *x, int *count, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	int key = i < n ? x[i] : -1;
	unsigned same = __match_any_sync(~0u, key);

	if (key >= 0 && __ffs(same) - 1 == (int)threadIdx.x % 32)
		atomicAdd(&count[key], __popc(same));
}
