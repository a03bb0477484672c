// launch: loop grid=1 block=1 args=w,i,i32:262144
// residency: 8
// The same work as nosync in one plain loop, inlined.

__global__ void loop(unsigned *y, const unsigned *x, int n)
{
	for (int i = 0; i < n; i++)
		y[i & 0xffff] = 3u * x[i & 0x3fff] + y[i & 0xffff];
}
