// launch: split grid=1 block=64 args=o,i,i32:1
// A conditional truncation to bfloat16 must happen (GCC 12 drops it without -fno-tree-ter).

__global__ void split(unsigned *o, const unsigned *in, int high)
{
	float s = (float)in[threadIdx.x] * 1.0001f;
	float t = high ? __uint_as_float(__float_as_uint(s) & 0xffff0000u) : s;
	atomicAdd(&o[1], 1u);
	if ((__float_as_uint(t) & 0xffffu) != 0)
		atomicAdd(&o[0], 1u);
	if (threadIdx.x == 9)
		reinterpret_cast<float *>(o)[9] = t;
}
