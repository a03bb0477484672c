// launch: wide grid=1 block=32 args=o,i+4
// modes: sanitize
// expect: sanitizer misaligned access
// A 16-byte load from an address that is not a multiple of 16.

__global__ void wide(float4 *o, const float4 *in)
{
	o[1 + threadIdx.x] = in[threadIdx.x];
}
