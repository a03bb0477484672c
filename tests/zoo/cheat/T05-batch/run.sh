# The pattern of time `batch` of tests/zoo/clock.c.
scenario=batch
. "$(dirname "$ZOO_LIB")/clock.sh"
