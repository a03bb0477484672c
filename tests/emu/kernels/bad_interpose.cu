// launch: k grid=1 block=32 args=o
// norun
// scan: "defined":\["write"\]
// modes: fast
// A C function of the candidate's own could replace the runtime's: named, refused by guard.

extern "C" long write(int, const void *, unsigned long n)
{
	return (long)n;
}

__global__ void k(unsigned *o)
{
	o[1] = 1;
}
