// launch: past grid=1 block=32 args=o,e,i32:250
// expect: fault_segv 0 bytes past the end of buffer 3
// expect[sanitize]: sanitizer kernel.cu:8: read of 4 bytes at 0 bytes past the end of buffer 3
// A read behind an input that ends at its page: a fault even without the sanitizer.

__device__ float get(const float *in, int k)
{
	return in[k] * 2.0f;
}

__global__ void past(float *o, const float *in, int n)
{
	float v = get(in, n - 31 + threadIdx.x);
	o[64 + threadIdx.x] = v;
}
