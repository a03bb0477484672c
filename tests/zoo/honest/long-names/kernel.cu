/* Half floats are hf_, eight registers are r8_ here: names as long as the tokens that begin so. */
struct r8_lane_block_of_32_threads_and_4_registers_each { float r8_value_of_lane_0_to_31_in_register_number_0; };

__device__ static float hf_add_two_operands_of_the_elementwise_sum(float a, float b)
{
	return a + b;
}

extern "C" __global__ void add_named(const float *x, const float *y, float *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	r8_lane_block_of_32_threads_and_4_registers_each r;

	if (i >= n)
		return;
	r.r8_value_of_lane_0_to_31_in_register_number_0 = hf_add_two_operands_of_the_elementwise_sum(x[i], y[i]);
	out[i] = r.r8_value_of_lane_0_to_31_in_register_number_0;
}
