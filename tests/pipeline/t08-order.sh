#!/bin/sh
# The same verdicts whatever -j, and whatever order make takes: WIDTH decides, nothing else.
. "$(dirname "$0")/../lib.sh"
real_tree
export PROPOSER=sweep DEVICE=sim

run_with() { # run_with NAME MAKE-OPTIONS...
	name=$1
	shift
	rm -rf trials champion
	make "$@" iterate N=6 SEED=7 >"$work/$name.log" 2>&1
	for promote in trials/[0-9]*/promote.json; do
		jq -S '{trial, verdict, reason, data}' "$promote"
	done >"$work/$name"
	cut -f1-6 trials/index.tsv >>"$work/$name"
	[ "$(wc -l <trials/index.tsv)" = 6 ]
}
for width in 1 3; do
	ok "WIDTH=$width at -j1" run_with one -j1 WIDTH=$width
	ok "WIDTH=$width at -j8" run_with eight -j8 WIDTH=$width
	ok "WIDTH=$width: -j1 and -j8 agree" cmp "$work/one" "$work/eight"
	# Another order: the goals backwards, one trial's promote at a time.
	rm -rf trials champion
	MAKE=/bin/true "$bin/iterate" --DEVICE=sim --PROPOSER=sweep --N=6 --SEED=7 --WIDTH=$width \
		>/dev/null 2>&1
	for id in 0004 0002 0006 0001 0005 0003; do
		make -j3 -f tools/make/trials.mk TS_RUN=trials/runs/r0001 TS_RUNNER="$bin/run" \
			trials/$id/bench.json trials/$id/promote.json >>"$work/log" 2>&1
	done
	for promote in trials/[0-9]*/promote.json; do
		jq -S '{trial, verdict, reason, data}' "$promote"
	done >"$work/back"
	cut -f1-6 trials/index.tsv >>"$work/back"
	ok "WIDTH=$width: another order of goals agrees" cmp "$work/one" "$work/back"
done
finish
