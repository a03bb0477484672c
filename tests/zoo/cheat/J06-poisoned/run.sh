# A whole record that was kept; then one file of it says something better, and the trial is closed again.
. "$ZOO_LIB"
good_run
jq ".data.ratio = 9.5" "trials/$id/bench.json" >x && mv x "trials/$id/bench.json"
again promote
refused_at promote
