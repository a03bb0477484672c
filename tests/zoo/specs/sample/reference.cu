/* sample in double precision. */
extern "C" __global__ void reference(const float *p, const float *u, int *draw, int rows, int cols, int draws)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	double total = 0, sum = 0;

	if (i >= rows * draws)
		return;
	const float *row = p + (long long)(i / draws) * cols;
	for (int c = 0; c < cols; c++)
		total += row[c];
	int at = 0;
	while (at + 1 < cols && (sum += row[at]) <= u[i] * total)
		at++;
	draw[i] = at;
}
