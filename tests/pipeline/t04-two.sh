#!/bin/sh
# Two makes at once, and a stage that outlived its make: the second comer gets 75 and learns who.
. "$(dirname "$0")/../lib.sh"
fake_tree

wait_for() {
	tries=200
	while [ $tries -gt 0 ]; do
		"$@" >/dev/null 2>&1 && return 0
		sleep 0.05
		tries=$((tries - 1))
	done
	return 1
}

FAKE_DO=judge:sleep "$bin/iterate" --DEVICE=sim --PROPOSER=sweep --N=2 >/dev/null 2>&1 &
first=$!
wait_for grep -qx '0001 judge' "$FAKE_CALLS"
ok "a second iterate gets 75" code 75 iterate --N=2
ok "and hears who is at work" has "process $first (iterate)" iterate --N=2
ok "status works meanwhile" has "running (process $first)" "$bin/status"
ok "status shows what is in flight" has 'in flight 0001 at judge' "$bin/status"
ok "a second wrapper on that trial gets 75" code 75 "$bin/run" trials/0001/judge.json
kill -9 $first
wait $first 2>/dev/null

# A stage whose make and wrapper are gone: start one by hand.
wait_for "$bin/status"
sleep 0.2
FAKE_DO=judge:sleep "$bin/judge" trials/0001/judge.json &
orphan=$!
wait_for sh -c "'$bin/status' | grep -q 'in flight 0001 at judge (process $orphan)'"
ok "a live orphan: the wrapper gets 75" code 75 "$bin/run" trials/0001/judge.json
ok "and hears of it" has "process $orphan (judge)" "$bin/run" trials/0001/judge.json
ok "a live orphan: the run stops with 75" code 75 iterate --N=2
ok "that costs the trial nothing" not test -e trials/0001/judge.json
(sleep 0.7; kill -9 $orphan) &
TS_RETRIES=6 iterate --N=2 >"$work/second" 2>&1
ok "waiting for it helps: the run goes on by itself" grep -q 'run r0001 is done' "$work/second"
ok "no second proposal" same 1 "$(calls '0001 a0/propose')"

rm -rf trials champion
export FAKE_DO=judge:sleep
ok "MAX_WALL_S ends a make" has 'MAX_WALL_S is over; `make iterate` continues at 0001' \
	iterate --N=2 --MAX_WALL_S=1
unset FAKE_DO
TS_RETRIES=6 # what was killed may take a moment to be gone
export TS_RETRIES
ok "and the run goes on later" has 'run r0001 is done' iterate --N=2
finish
