#!/bin/sh
# recheck.sh [FOLDER...] - recompute every timing verdict that is shipped with its raw samples.
#
# Looks below champion/ and tests/bench/evidence* (or below FOLDERs) for bench.json and confirm.json with their
# *.raw beside them. Prints what tools/recheck says of each; exit 1 when one does not agree. Without FOLDERs
# also the hashes of what is shipped (tools/ship --check).
#
# SPDX-License-Identifier: MIT
set -u
: "${BUILD:=.build}"
chain=true
[ $# -gt 0 ] || { chain="$(dirname "$0")/../../tools/ship --check"; set -- champion tests/bench/evidence*; }
n=0
bad=0
# A champion is a link to a folder of .v/: -L would find it twice.
for v in $(find "$@" -name bench.json -o -name confirm.json 2>/dev/null | sort); do
	[ -f "${v%.json}.raw" ] || continue
	n=$((n + 1))
	"$BUILD/bin/recheck" "$v" || bad=$((bad + 1))
done
echo "$n verdicts with raw samples, $bad of them not as recomputed"
$chain || bad=$((bad + 1))
[ $bad = 0 ]
