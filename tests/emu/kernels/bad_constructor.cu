// launch: k grid=1 block=32 args=o
// norun
// scan: "init":\["\.init_array
// modes: fast
// Code that would run before main.

static __attribute__((constructor)) void early()
{
	__builtin_trap();
}

__global__ void k(unsigned *o)
{
	o[1] = 1;
}
