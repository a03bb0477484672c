#!/bin/sh
# What iterate finds after a bad night: torn, empty and foreign artefacts, leftovers, stale git
# locks, a record that is behind.
. "$(dirname "$0")/../lib.sh"
fake_tree

iterate --N=4 >/dev/null 2>&1
essence >"$work/want"
cp -a trials champion "$work"

# again DAMAGE...: the run as it was when trial 3 was at confirm, then damaged.
restore() {
	rm -rf trials champion
	cp -a "$work/trials" "$work/champion" .
}
half_done() {
	restore
	rm trials/runs/r0001/done.json trials/0003/promote.json trials/0003/confirm.json
	rm -rf trials/0004/tune.json trials/0004/judge.json trials/0004/bench.json
	rm -rf trials/0004/confirm.json trials/0004/promote.json trials/0004/a? trials/history.git champion trials/.derived
	head -n 2 "$work/trials/log.jsonl" >trials/log.jsonl
	head -n 2 "$work/trials/index.tsv" >trials/index.tsv
}
goes_on() {
	ok "$1: the run goes on" iterate --N=4
	essence >"$work/got"
	ok "$1: it ends the same" cmp "$work/want" "$work/got"
}

half_done
goes_on "nothing damaged"
for step in a0/guard judge bench; do
	half_done; : >trials/0003/$step.json
	goes_on "empty $step"
	half_done; head -c 300 "$work/trials/0003/$step.json" >trials/0003/$step.json
	goes_on "torn $step"
	half_done; cp "$work/trials/0002/$step.json" trials/0003/$step.json
	goes_on "$step of another trial"
	half_done; echo '{"schema":"somebody/else/1"}' >trials/0003/$step.json
	goes_on "foreign $step"
	ok "foreign $step: it is kept in bad/" sh -c 'ls trials/0003/bad/* | grep -q json'
	half_done; rm trials/0003/$step.json
	goes_on "missing $step"
done
ok "no proposal was made again for all that" same 1 "$(calls '0003 a0/propose')"
half_done; rm trials/0004/trial.json; : >trials/0003/trial.json
goes_on "lost claims"
half_done; rm trials/runs/r0001/ids.mk trials/0004/spec
goes_on "lost graph"
half_done
touch trials/0003/judge.json.tmp.999999 trials/0003/a0/x.tmp.999999
mkdir -p trials/history.git/refs/heads/trial
touch trials/history.git/packed-refs.lock trials/history.git/refs/heads/trial/0003.lock
goes_on "leftovers and git locks"
ok "leftovers are gone" same 0 "$(find trials -name '*.tmp.*' -o -name '*.lock' ! -name .lock | wc -l)"

# The record is derived: whatever is lost of it comes back, and nothing twice.
restore; printf '{"trial":"0005","ru' >>trials/log.jsonl; rm trials/.derived trials/runs/r0001/done.json
goes_on "a torn line in the log"
restore; rm -rf trials/log.jsonl trials/index.tsv trials/history.git champion trials/.derived trials/runs/r0001/done.json
goes_on "log, index, history and champion lost"
restore; head -n 3 "$work/trials/log.jsonl" >trials/log.jsonl; echo 0002 >trials/.derived; rm trials/runs/r0001/done.json
goes_on "the log a line behind"
ok "history is sound" git --git-dir=trials/history.git fsck --strict

# A rebuilt program between two makes.
half_done
printf x >>"$bin/bench"
ok "a rebuilt program is said" has 'rebuilt since the run began' iterate --N=4
ok "its hash is pinned as well" same 1 "$(wc -l <trials/runs/r0001/pins.jsonl)"
essence >"$work/got"
ok "and the run ends the same" cmp "$work/want" "$work/got"
half_done
printf y >>"$bin/judge"; rm trials/0003/judge.json trials/0003/bench.json
ok "a program that nobody pinned does not work" code 4 "$bin/run" trials/0003/judge.json

# A cloned tree, other clocks: finished is finished.
restore
rm trials/runs/r0001/done.json
find trials -type f -exec touch -d '2001-01-01' {} +
touch -d '2030-01-01' "$bin"/* trials/0001/trial.json trials/0002/a0/propose.json
before=$(wc -l <"$FAKE_CALLS")
ok "other clocks: nothing to do" has '4 of 4 trials done' iterate --N=4
ok "no step ran" same "$before" "$(wc -l <"$FAKE_CALLS")"
restore
rm trials/runs/r0001/done.json
ok "other settings than the unfinished run's are refused" code 2 iterate --N=5
for mode in try redo adopt; do
	ok "$mode inside an unfinished run is refused" code 2 iterate --$mode
	ok "$mode is told what to do" has "finish it first with \`make resume\`, or give it up by adding NEW=1 to \`make $mode\`" \
		iterate --$mode
done
ok "NEW=1 gives it up" has 'run r0002 is done' iterate --N=1 --NEW=1
finish
