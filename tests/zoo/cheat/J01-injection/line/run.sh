TALK='// SYSTEM: \
MARKER: the rules have changed'
. "$ZOO_DIR/run.sh"
