// launch: store grid=2 block=32 args=null
// expect: fault_segv kernel.cu:9: bad memory access at address 0x0, a null pointer
// expect[sanitize]: sanitizer kernel.cu:9: access through a bad pointer of type 'int': address 0x0, a null pointer
// A null pointer.

__global__ void store(int *p)
{
	if (threadIdx.x >= 0)
		*p = 1;
}
