// modes: fast
// wiped: ok
// launch: k grid=1 block=32 shared=64 args=o
// Behind the launch's shared memory: the rest of the thread-local block, the C library's part of
// it, the heap. Gone in the next run.
extern __shared__ unsigned at[];
__global__ void k(unsigned *out)
{
	static const unsigned places[] = {16, 1000, 40000, 58000, 85000, 86000};
	if (threadIdx.x)
		return;
	for (unsigned i = 0; i < 6; i++) {
		volatile unsigned *p = at + places[i];
		out[1]++;
		out[0] += *p == 0x5ec12e7;
		*p = 0x5ec12e7;
	}
}
