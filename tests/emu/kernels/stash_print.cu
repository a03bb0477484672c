// modes: fast
// wiped: ok
// launch: k grid=1 block=1 args=o
// The runtime's own state: the end of the printf buffer.
extern "C" char emu_log[];
__global__ void k(unsigned *out)
{
	volatile unsigned *p = (unsigned *)(emu_log + 4000);
	out[1] = 1;
	out[0] += *p == 0x5ec12e7;
	*p = 0x5ec12e7;
}
