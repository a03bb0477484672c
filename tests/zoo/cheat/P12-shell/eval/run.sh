BAD='$(file >planted,x)$(eval $(file >planted,x))'
. "$ZOO_DIR/run.sh"
