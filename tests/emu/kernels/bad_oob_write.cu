// launch: past grid=5 block=256 args=o
// expect: ok
// expect[sanitize]: sanitizer kernel.cu:9: write of 4 bytes at
// modes: sanitize
// A write one element behind an output.

__global__ void past(float *o)
{
	o[16380 + (threadIdx.x & 7)] = 1.0f;
}
