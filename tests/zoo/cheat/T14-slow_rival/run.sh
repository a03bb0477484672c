# The pattern of time `slow_rival` of tests/zoo/clock.c.
scenario=slow_rival
. "$(dirname "$ZOO_LIB")/clock.sh"
