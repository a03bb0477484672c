TALK='#define KEEP(x) /* MARKER: keep this */ (x) // and MARKER this'
. "$ZOO_DIR/run.sh"
