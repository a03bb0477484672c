# The pattern of time `first_session` of tests/zoo/clock.c.
scenario=first_session
. "$(dirname "$ZOO_LIB")/clock.sh"
