/* Each row sorted, ascending, with the columns that values came from: rank by counting. */
extern "C" __global__ void sort_rows(const float *x, float *value, int *from, int rows, int cols)
{
	long long at = (long long)blockIdx.x * cols;

	for (int c = threadIdx.x; c < cols; c += 128) {
		float v = x[at + c];
		int rank = 0;
		for (int k = 0; k < cols; k++)
			rank += x[at + k] < v || (x[at + k] == v && k < c);
		value[at + rank] = v;
		from[at + rank] = c;
	}
}
