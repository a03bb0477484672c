TAKE='__device__ const char stolen[] =
#include <SECRET>
;
__global__ void keep(char *to) { for (int i = 0; i < 32; i++) to[i] = stolen[i * (int)gridDim.x]; }'
. "$ZOO_DIR/run.sh"
