// launch: fill grid=3,2,2 block=8,4,2 args=w
// launch: check grid=1 block=1 args=o,w
// Every thread of a three-dimensional grid runs once, with its own indices.

__global__ void fill(unsigned *w)
{
	unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
	unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
	unsigned size = blockDim.x * blockDim.y * blockDim.z;
	w[block * size + thread] += block * 1000 + thread + 1;
}

__global__ void check(unsigned *out, const unsigned *w)
{
	for (unsigned b = 0; b < 12; b++)
		for (unsigned t = 0; t < 64; t++) {
			out[1]++;
			if (w[b * 64 + t] != b * 1000 + t + 1)
				out[0]++;
		}
}
