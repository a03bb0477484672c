# A model's answer that brings its own verdict, for a kernel that is wrong.
. "$ZOO_LIB"
ZOO_ON=emu ZOO_SPEC=add ZOO_STOP=unittest reply "$(dirname "$0")/reply.txt"
refused_at unittest
