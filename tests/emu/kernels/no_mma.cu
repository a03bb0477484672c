// launch: k grid=1 block=32 args=o
// expect: no-compile not emulable: <mma.h>
// Tensor core headers say that they are not emulable.

#include <mma.h>

__global__ void k(int *o)
{
	o[1] = 1;
}
