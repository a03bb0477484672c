TAKE='#include "SECRET"'
. "$ZOO_DIR/run.sh"
