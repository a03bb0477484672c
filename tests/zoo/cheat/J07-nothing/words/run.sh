SAY='echo all checks passed, the kernel is in place'
. "$ZOO_DIR/run.sh"
