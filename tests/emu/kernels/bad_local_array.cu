// launch: local grid=1 block=8 args=o,i32:9
// modes: sanitize
// expect: sanitizer outside a local variable
// A local array overrun through a pointer.

__device__ __noinline__ void set(int *p, int k)
{
	p[k] = k;
}

__global__ void local(int *o, int n)
{
	int a[8];
	for (int k = 0; k < n; k++)
		set(a, k);
	o[1] = a[threadIdx.x];
}
