TALK='static __device__ const char *const mark = "/*"; // MARKER */'
. "$ZOO_DIR/run.sh"
