// launch: local grid=2 block=64 args=o,i
// stack_kib: 512
// stall_ms: 60000
// Local arrays of 256 KiB, where the script asks for larger stacks.

__global__ void local(unsigned *o, const unsigned *in)
{
	unsigned a[65536];
	for (int k = 0; k < 65536; k++)
		a[k] = in[k & 1023] + k;
	__syncthreads();
	unsigned sum = 0;
	for (int k = 0; k < 65536; k += 64)
		sum += a[(k + threadIdx.x) & 65535] - in[(k + threadIdx.x) & 1023] - (k + threadIdx.x);
	atomicAdd(&o[0], sum);
	atomicAdd(&o[1], 1u);
}
