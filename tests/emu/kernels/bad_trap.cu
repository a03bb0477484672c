// launch: fail grid=2 block=32 args=o,i32:3
// expect: trap kernel.cu:7: assertion 'n == 4' failed
// A failing assert.

__global__ void fail(int *o, int n)
{
	assert(n == 4);
	o[1] = 1;
}
