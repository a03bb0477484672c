AGAIN=1
. "$ZOO_DIR/run.sh"
