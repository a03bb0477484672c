# A secret beside the judge, readable for everybody, and a kernel that takes it in at compile time.
# TAKE is the text that does it; SECRET in it stands for the file.
. "$ZOO_LIB"
printf '%s\n' '"the judge keeps this to itself"' >secret
chmod 644 secret
chmod 711 .
[ "${TAKE:-}" ] || TAKE='__device__ const char stolen[] =
#include "SECRET"
;
__global__ void keep(char *to) { for (int i = 0; i < 32; i++) to[i] = stolen[i * (int)gridDim.x]; }'
{
	printf '%s\n' "$TAKE" | sed "s,SECRET,$PWD/secret,"
	cat "$root/tests/zoo/specs/add/baseline/kernel.cu"
} >k.cu
ZOO_ON=emu ZOO_SPEC=add ZOO_STOP=guard try k.cu "$root/tests/zoo/specs/add/baseline/plan.json"
if [ "$(verdict guard)" = pass ]; then
	grep -q 'the judge keeps this' "trials/$id/a0/artefact/emu-fast" || broken "nothing was taken"
elif grep -q 'the judge keeps this' "trials/$id/a0/guard.log"; then
	echo through # by the log, which people and models read
	exit 0
fi
refused_at guard
