// modes: fast
// wiped: ok
// launch: k grid=1 block=64 args=o
// Other threads' stacks, written past everything the language allows: gone in the next run.
__global__ void k(unsigned *out)
{
	__syncthreads(); /* now each of them has one */
	if (threadIdx.x == 0)
		for (unsigned f = 0; f < 63; f++)
			for (unsigned page = 3; page < 16; page++) {
				volatile unsigned *p = (unsigned *)(0x2000000000ull + (f + 1) * 65536ull -
								    page * 4096);
				out[1]++;
				out[0] += *p == 0x5ec12e7;
				*p = 0x5ec12e7;
			}
	/* and what a local variable finds where an earlier one was */
	volatile unsigned local[256];
	for (unsigned i = 0; i < 256; i++) {
		out[0] += local[i] == 0x5ec12e7;
		local[i] = 0x5ec12e7;
	}
}
