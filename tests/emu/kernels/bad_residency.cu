// launch: wait grid=8 block=32 args=w
// residency: 4
// stall_ms: 30
// expect: not_emulable 4 of 8 blocks cannot start beyond residency 4
// orders: forward
// Blocks that wait for one beyond the residency.

__global__ void wait(unsigned *w)
{
	if (blockIdx.x == 7)
		w[0] = 1;
	else
		while (*(volatile unsigned *)w == 0)
			__nanosleep(100);
}
