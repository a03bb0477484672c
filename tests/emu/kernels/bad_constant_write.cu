// launch: change grid=1 block=32 args=o
// expect: fault_segv
// expect[sanitize]: sanitizer
// scan: "writable":\[\]
// modes: fast
// Constant memory cannot carry state: it is read-only.

__constant__ int memory[4];

__global__ void change(int *o)
{
	memory[threadIdx.x & 3]++;
	o[1] = 1;
}
