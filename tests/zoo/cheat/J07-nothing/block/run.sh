SAY='printf "\140\140\140cuda kernel.cu\n\140\140\140\n"'
. "$ZOO_DIR/run.sh"
