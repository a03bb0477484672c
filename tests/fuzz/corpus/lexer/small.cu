#include <cuda_fp16.h>
%:define A /* x */ 1
__global__ void k(float *x) { x[threadIdx.x] = A; } // end
