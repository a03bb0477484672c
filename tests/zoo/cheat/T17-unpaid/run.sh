# The pattern of time `unpaid` of tests/zoo/clock.c.
scenario=unpaid
. "$(dirname "$ZOO_LIB")/clock.sh"
