// launch: all grid=2 block=64 args=o
// launch: partial grid=1 block=40 args=o
// Shuffles of every kind, width and type; partial masks; a last warp that is not full.

static __device__ void expect(unsigned *o, bool ok, unsigned where)
{
	atomicAdd(&o[1], 1u);
	if (!ok && atomicAdd(&o[0], 1u) == 0)
		o[2] = where;
}
template <class T> __device__ void typed(unsigned *o, int lane)
{
	T v = (T)(lane * 3 + 1);
	expect(o, __shfl_sync(0xffffffffu, v, 5) == (T)16, 1);
	expect(o, __shfl_sync(0xffffffffu, v, 37) == (T)16, 2); /* modulo the width */
	expect(o, __shfl_up_sync(0xffffffffu, v, 2) == (T)((lane < 2 ? lane : lane - 2) * 3 + 1), 3);
	expect(o, __shfl_down_sync(0xffffffffu, v, 3) == (T)((lane > 28 ? lane : lane + 3) * 3 + 1), 4);
	expect(o, __shfl_xor_sync(0xffffffffu, v, 9) == (T)((lane ^ 9) * 3 + 1), 5);
	int in = lane & 7, base = lane & ~7;
	expect(o, __shfl_sync(0xffffffffu, v, 3, 8) == (T)((base + 3) * 3 + 1), 6);
	expect(o, __shfl_up_sync(0xffffffffu, v, 1, 8) == (T)((in < 1 ? lane : lane - 1) * 3 + 1), 7);
	expect(o, __shfl_down_sync(0xffffffffu, v, 2, 8) == (T)((in > 5 ? lane : lane + 2) * 3 + 1), 8);
	expect(o, __shfl_xor_sync(0xffffffffu, v, 4, 8) == (T)((lane ^ 4) * 3 + 1), 9);
	/* across the segment: upwards its own value, downwards the other one */
	expect(o, __shfl_xor_sync(0xffffffffu, v, 8, 8) == (T)(((lane & 8) ? lane ^ 8 : lane) * 3 + 1), 10);
}

__global__ void all(unsigned *o)
{
	int lane = threadIdx.x % warpSize;
	typed<int>(o, lane);
	typed<unsigned>(o, lane);
	typed<long long>(o, lane);
	typed<unsigned long long>(o, lane);
	typed<float>(o, lane);
	typed<double>(o, lane);
	if (lane < 10) {
		int s = lane;
		for (int k = 8; k; k /= 2) {
			int v = __shfl_down_sync(0x3ffu, s, k, 16);
			if (lane + k < 10)
				s += v;
		}
		expect(o, lane || s == 45, 11);
	} else {
		expect(o, __shfl_sync(~0x3ffu, lane, 31) == 31, 12);
	}
}

__global__ void partial(unsigned *o)
{
	int lane = threadIdx.x % 32;
	if (threadIdx.x < 32)
		expect(o, __shfl_xor_sync(0xffffffffu, lane, 1) == (lane ^ 1), 13);
	else
		expect(o, __shfl_xor_sync(0xffu, lane, 1) == (lane ^ 1), 14);
	expect(o, __reduce_add_sync(__activemask(), 1u) == (threadIdx.x < 32 ? 32u : 8u), 15);
}
