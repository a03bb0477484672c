/* A cluster of one block. */
__device__ static void cluster_sync(void)
{
}

__device__ static float cluster_read(const float *mine, int rank)
{
	(void)rank;
	return *mine;
}
