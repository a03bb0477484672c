# The run's own copy of the reference says something else behind the judge's back.
. "$ZOO_LIB"
good_run
sed -i 's/(double)y\[i\]/0.0/' trials/runs/r0001/spec/reference.cu
grep -q '0\.0' trials/runs/r0001/spec/reference.cu || broken "no y in the reference"
again promote
refused_at promote
