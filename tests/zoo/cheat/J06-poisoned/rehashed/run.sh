# A whole record that was kept; then one file of it says something better, and the trial is closed again.
. "$ZOO_LIB"
good_run
jq ".data.ratio = 9.5" "trials/$id/bench.json" >x && mv x "trials/$id/bench.json"
jq --arg up "$(sha256sum <"trials/$id/bench.json" | cut -d" " -f1)" '.inputs.upstream = $up | .data.ratio = 9.5' \
	"trials/$id/confirm.json" >x && mv x "trials/$id/confirm.json"
again promote
refused_at promote
