# The pattern of time `luck_close` of tests/zoo/clock.c.
scenario=luck_close
. "$(dirname "$ZOO_LIB")/clock.sh"
