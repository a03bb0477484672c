// launch: two grid=2 block=32 args=o,i32:3
// expect: bad_script kernel 'two' parameter 1 has 8 bytes, the plan gives 4
// An argument of another size than the parameter.

__global__ void two(int *o, long long n)
{
	o[1] = (int)n;
}
