/* Inclusive sums of a row of integers: one block. */
extern "C" __global__ void reference(const int *x, int *y, int n)
{
	__shared__ int part[256];
	int per = (n + 255) / 256, from = min(n, (int)threadIdx.x * per), to = min(n, from + per), sum = 0;

	for (int i = from; i < to; i++)
		sum += x[i];
	part[threadIdx.x] = sum;
	__syncthreads();
	sum = 0;
	for (int k = 0; k < (int)threadIdx.x; k++)
		sum += part[k];
	for (int i = from; i < to; i++)
		y[i] = sum += x[i];
}
