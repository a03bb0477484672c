/* A warp a row: the largest ordered pattern by one instruction, then the lowest column that has it. */
extern "C" __global__ void __launch_bounds__(128) argmax_redux(const float *x, float *value, int *at, int rows, int cols)
{
	int row = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32, mine = 0x7fffffff;
	unsigned most = 0;

	if (row >= rows)
		return;
	for (int c = lane; c < cols; c += 32) {
		unsigned u = __float_as_uint(x[(long long)row * cols + c] + 0.0f);
		u = u & 0x80000000u ? ~u : u | 0x80000000u;
		if (u > most) {
			most = u;
			mine = c;
		}
	}
	unsigned top = __reduce_max_sync(~0u, most);
	int where = (int)__reduce_min_sync(~0u, most == top ? (unsigned)mine : 0x7fffffffu);
	if (lane == 0) {
		at[row] = where;
		value[row] = x[(long long)row * cols + where];
	}
}
