// modes: fast
// wiped: ok
// residency: 4
// launch: k grid=4 block=32 args=o
// Records and saved shared memory of blocks, by their fixed addresses.
__global__ void k(unsigned *out)
{
	__shared__ unsigned s[64];
	s[threadIdx.x] = 1;
	__nanosleep(1); /* all four are resident, their memory is saved */
	if (threadIdx.x || blockIdx.x)
		return;
	out[1] = 1;
	for (unsigned b = 0; b < 4; b++) {
		char *block = (char *)(0x1600000000ull + b * (24576 + 228 * 1024 + 8192));
		volatile unsigned *p = (unsigned *)(block + 24576 - 64);
		volatile unsigned *q = (unsigned *)(block + 24576 + 228 * 1024);
		volatile unsigned *r = (unsigned *)(block + 24576 + 2048);
		out[0] += *p == 0x5ec12e7 || *q == 0x5ec12e7 || *r == 0x5ec12e7;
		*p = *q = *r = 0x5ec12e7;
	}
}
