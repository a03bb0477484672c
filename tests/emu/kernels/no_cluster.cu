// launch: k grid=2 block=32 cluster=2,1,1 args=o
// expect: not_emulable clusters are not emulable
// A launch with clusters of more than one block is refused.

__global__ void k(int *o)
{
	o[1] = 1;
}
