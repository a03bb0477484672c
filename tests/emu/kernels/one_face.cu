// launch: face grid=1 block=32 args=o
// A kernel cannot show the sanitizers another face: no macro tells the builds apart.

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#error the build can be told from the others
#endif

__global__ void face(unsigned *o)
{
	atomicAdd(&o[1], 1u);
}
