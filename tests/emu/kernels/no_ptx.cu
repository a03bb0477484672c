// launch: k grid=1 block=32 args=o
// expect: no-compile emu_not_emulable_inline_ptx
// Inline PTX is named as such.

__global__ void k(unsigned *o)
{
	unsigned x;
	asm volatile("mov.u32 %0, %%laneid;" : "=r"(x));
	o[1] = x;
}
