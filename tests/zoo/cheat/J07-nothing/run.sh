# A proposer that ends with exit code 0 and gives nothing: no answer is no candidate.
. "$ZOO_LIB"
SAY=${SAY:-true}
PROPOSER_COMMAND=$SAY
export PROPOSER_COMMAND
ZOO_STOP=propose iterate --NEW=1 --SPEC=vector_add --DEVICE=sim --PROPOSER=command --N=1
refused_at propose
