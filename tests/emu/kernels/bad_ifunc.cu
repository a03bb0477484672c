// launch: k grid=1 block=32 args=o
// norun
// scan: "ifunc":\["hidden"\]
// modes: fast
// An indirect function is resolved by code that runs before main.

static int real_one(int x)
{
	return x + 1;
}
extern "C" {
static int (*choose())(int)
{
	return real_one;
}
int hidden(int) __attribute__((ifunc("choose")));
}

__global__ void k(unsigned *o)
{
	o[1] = hidden(0);
}
