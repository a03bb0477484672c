WHERE=guard.json
. "$ZOO_DIR/run.sh"
