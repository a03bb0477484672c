#!/bin/sh
# The kill-anywhere proof in short: 15 kills in a run of 6 trials. tests/kill/run is the long one.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/lib.sh"
kills=${KILLS:-15} least=3 trials=${N:-6} width=${WIDTH:-2}
kill_proof
finish
