# The pattern of time `boost` of tests/zoo/clock.c.
scenario=boost
. "$(dirname "$ZOO_LIB")/clock.sh"
