// launch: k grid=1 block=32 args=o
// norun
// scan: "tls_init":\["\.tdata"\]
// modes: fast
// A thread-local variable with a value would be state; shared memory has none.

thread_local int count = 7;

__global__ void k(unsigned *o)
{
	o[1] = count++;
}
