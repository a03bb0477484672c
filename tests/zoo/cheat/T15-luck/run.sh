# The pattern of time `luck` of tests/zoo/clock.c.
scenario=luck
. "$(dirname "$ZOO_LIB")/clock.sh"
