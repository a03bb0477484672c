# A whole record that was kept; then one file of it says something better, and the trial is closed again.
. "$ZOO_LIB"
good_run
raw=$(ls "trials/$id"/bench.raw*) && { cat "$raw"; echo; } >x && mv x "$raw"
again promote
refused_at promote
