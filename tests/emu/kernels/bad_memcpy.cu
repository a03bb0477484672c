// launch: block grid=1 block=1 args=o,i,i32:65540
// modes: sanitize
// expect: sanitizer kernel.cu:8: read of 65540 bytes
// A memcpy that is longer than its destination.

__global__ void block(char *o, const char *in, int n)
{
	memcpy(o, in, (size_t)n - 0); memset(o, 0, n);
}
