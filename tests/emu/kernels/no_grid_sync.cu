// launch: k grid=9 block=32 coop args=o
// residency: 8
// expect: not_emulable kernel.cu:10: grid.sync() needs all 9 blocks resident
// grid.sync() needs every block resident.

#include <cooperative_groups.h>

__global__ void k(int *o)
{
	cooperative_groups::this_grid().sync();
	o[1] = 1;
}
