// launch: forever grid=1 block=64 args=o
// limit_ms: 300
// expect: time_limit the time limit passed
// A loop of barriers without end meets the time limit.

__global__ void forever(volatile int *o)
{
	while (o[5] == 0)
		__syncthreads();
}
