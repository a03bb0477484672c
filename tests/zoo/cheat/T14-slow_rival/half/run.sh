# The pattern of time `slow_rival_half` of tests/zoo/clock.c.
scenario=slow_rival_half
. "$(dirname "$ZOO_LIB")/clock.sh"
