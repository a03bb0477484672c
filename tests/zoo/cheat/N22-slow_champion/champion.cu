// The champion that is sabotaged: how long it takes is in a variable.
__device__ int paced_us = 300;

extern "C" __global__ void paced(const float *x, const float *y, float *out, int n)
{
	int first = blockIdx.x * blockDim.x + threadIdx.x;

	for (int i = 0; i < paced_us && first == 0; i++)
		__nanosleep(1000);
	for (int i = first; i < n; i += gridDim.x * blockDim.x)
		out[i] = x[i] + y[i];
}
