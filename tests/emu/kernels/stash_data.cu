// modes: fast
// wiped: bad_state
// launch: k grid=1 block=1 args=o
// Data that no launch changes, and the rest of its last page: the next WIPE ends the image.
extern "C" char _end[];
__global__ void k(unsigned *out)
{
	volatile unsigned *p = (unsigned *)(((unsigned long long)_end + 15) & ~15ull);
	out[1] = 1;
	out[0] += *p == 0x5ec12e7;
	*p = 0x5ec12e7;
}
