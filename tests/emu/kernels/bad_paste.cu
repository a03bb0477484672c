// modes: fast
// norun
// scan: "undefined":\["emu_log"\]
// launch: k grid=1 block=1 args=o
// A name of the runtime that the source does not hold: it is refused in the object.
#define JOIN(a, b) a##b
#define NAME(a, b) JOIN(a, b)
extern "C" char NAME(em, u_log)[];
__global__ void k(unsigned *out)
{
	out[1] = (unsigned char)NAME(em, u_log)[0] + 1;
}
