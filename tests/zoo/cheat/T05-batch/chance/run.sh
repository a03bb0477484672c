# The pattern of time `batch_chance` of tests/zoo/clock.c.
scenario=batch_chance
. "$(dirname "$ZOO_LIB")/clock.sh"
