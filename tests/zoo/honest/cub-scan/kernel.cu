/* Tiles are scanned by CUB, then their sums by one block, then added. */
#include <cub/block/block_load.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/block/block_store.cuh>

typedef cub::BlockScan<int, 128> scan_type;
typedef cub::BlockLoad<int, 128, 4, cub::BLOCK_LOAD_TRANSPOSE> load_type;
typedef cub::BlockStore<int, 128, 4, cub::BLOCK_STORE_TRANSPOSE> store_type;

extern "C" __global__ void __launch_bounds__(128) tiles(const int *x, int *y, int *sums, int n)
{
	__shared__ union {
		typename scan_type::TempStorage scan;
		typename load_type::TempStorage load;
		typename store_type::TempStorage store;
	} temp;
	int v[4], total, from = blockIdx.x * 512;

	load_type(temp.load).Load(x + from, v, min(512, n - from), 0);
	__syncthreads();
	scan_type(temp.scan).InclusiveSum(v, v, total);
	__syncthreads();
	store_type(temp.store).Store(y + from, v, min(512, n - from));
	if (threadIdx.x == 0)
		sums[blockIdx.x] = total;
}

extern "C" __global__ void __launch_bounds__(128) above(int *sums, int blocks)
{
	__shared__ typename scan_type::TempStorage temp;
	int before = 0;

	for (int b = 0; b < blocks; b += 128) {
		int i = b + threadIdx.x, v = i < blocks ? sums[i] : 0, total;
		scan_type(temp).ExclusiveSum(v, v, total);
		if (i < blocks)
			sums[i] = before + v;
		before += total;
		__syncthreads();
	}
}

extern "C" __global__ void __launch_bounds__(128) shift(int *y, const int *sums, int n)
{
	for (int i = blockIdx.x * 512 + threadIdx.x; i < min(n, (int)blockIdx.x * 512 + 512); i += 128)
		y[i] += sums[blockIdx.x];
}
