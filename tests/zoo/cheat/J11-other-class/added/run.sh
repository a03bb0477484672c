# A record of one class of device is passed off as one of another: by the index that runs start from.
. "$ZOO_LIB"
good_run
sed 's/	sim	/	emu	/' trials/index.tsv >x && cat x >>trials/index.tsv
ZOO_STOP=propose ZOO_ON=emu try "$root/specs/vector_add/baseline/kernel.cu" "$root/specs/vector_add/baseline/plan.json"
if [ "$id" != 0001 ] && [ "$(jq -r '.champion.trial // ""' trials/runs/r0002/run.json)" = 0001 ]; then
	echo through
elif grep -q "index.tsv' is damaged" iterate.log; then
	echo class
else
	broken "neither: $(tail -n 3 iterate.log)"
fi
