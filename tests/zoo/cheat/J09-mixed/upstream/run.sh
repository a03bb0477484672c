# A whole record that was kept; then one file of it says something better, and the trial is closed again.
. "$ZOO_LIB"
good_run
jq ".elapsed_s = 1000" "trials/$id/judge.json" >x && mv x "trials/$id/judge.json"
again promote
refused_at promote
