// launch: store grid=1 block=32 args=i
// expect: fault_segv read-only
// expect[sanitize]: sanitizer read-only
// A write to an input.

__global__ void store(int *p)
{
	p[5] = 1;
}
