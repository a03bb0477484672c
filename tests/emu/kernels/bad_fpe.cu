// launch: divide grid=1 block=32 args=o,i32:0
// expect: fault_fpe kernel.cu:8: integer division by zero
// expect[sanitize]: sanitizer kernel.cu:8: integer division by zero
// An integer division by zero.

__global__ void divide(int *o, int n)
{
	o[1] = o[2] / n;
}
