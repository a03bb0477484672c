/* Counts its reps past the end of a variable, where nothing is put back, and faults in the 150th. */
__device__ unsigned int variable[4];

extern "C" __global__ void __launch_bounds__(256) late_fault(const float *__restrict__ x, const float *__restrict__ y,
							     float *__restrict__ out, int n)
{
	volatile unsigned int *beyond = variable + 16;
	if (blockIdx.x == 0 && threadIdx.x == 0) {
		unsigned int k = beyond[0] == 0x7e57da7au ? beyond[1] : 0;
		beyond[0] = 0x7e57da7au;
		beyond[1] = k + 1;
		if (k > 150)
			*(volatile int *)16 = 1;
	}
	for (long long i = blockIdx.x * 256ll + threadIdx.x; i < n; i += gridDim.x * 256ll)
		out[i] = x[i] + y[i];
}
