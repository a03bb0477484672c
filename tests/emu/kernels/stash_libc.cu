// modes: fast
// wiped: bad_state
// launch: k grid=1 block=1 args=o
// The C library's data: a pointer that it would call.
extern "C" void *__environ;
__global__ void k(unsigned *out)
{
	out[1] = 1;
	out[0] += __environ == (void *)0x5ec12e7;
	*(void *volatile *)&__environ = (void *)0x5ec12e7;
}
