// launch: collide grid=4 block=32 args=o
// modes: race
// expect: race a write to byte 32 of buffer 0
// Two blocks write different values to one word.

__global__ void collide(int *o)
{
	if (threadIdx.x == 5)
		o[8] = 100 + (int)blockIdx.x;
}
