BAD='x
all: ; touch planted
$(shell touch planted)'
. "$ZOO_DIR/run.sh"
