// launch: deep grid=1 block=32 args=o,i32:100000
// expect: fault_segv a stack overflow
// Recursion without end.

__device__ __noinline__ int down(int n, volatile int *p)
{
	volatile int a[64];
	a[n & 63] = n;
	return n ? down(n - 1, p) + a[(n + 1) & 63] : *p;
}

__global__ void deep(int *o, int n)
{
	o[1] = down(n, o);
}
