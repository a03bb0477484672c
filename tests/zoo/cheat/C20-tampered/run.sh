# A whole record that was kept; then the run's own copy of the problem gets bounds a thousand times as wide, and
# the trial is closed again.
. "$ZOO_LIB"
good_run
sed -i 's/"kind": "tolerance"/"kind": "tolerance", "rtol": 10.0/' trials/runs/r0001/spec/spec.json
grep -q '"rtol": 10.0' trials/runs/r0001/spec/spec.json || broken "no tolerance in the problem"
again promote
refused_at promote
