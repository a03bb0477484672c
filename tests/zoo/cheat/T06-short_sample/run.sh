# The pattern of time `short_sample` of tests/zoo/clock.c.
scenario=short_sample
. "$(dirname "$ZOO_LIB")/clock.sh"
