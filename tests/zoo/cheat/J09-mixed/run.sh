# A whole record that was kept; then one file of it says something better, and the trial is closed again.
. "$ZOO_LIB"
good_run
jq ".inputs.candidate = \"$(printf other | sha256sum | cut -d" " -f1)\"" "trials/$id/confirm.json" >x && mv x "trials/$id/confirm.json"
again promote
refused_at promote
