// launch: loop grid=1 block=1 args=w,i,i32:262144
// residency: 8
// The same work as nosync in one plain loop, a call for each element.

static __device__ __noinline__ void one(unsigned *y, const unsigned *x, int i)
{
	y[i & 0xffff] = 3u * x[i & 0x3fff] + y[i & 0xffff];
}

__global__ void loop(unsigned *y, const unsigned *x, int n)
{
	for (int i = 0; i < n; i++)
		one(y, x, i);
}
