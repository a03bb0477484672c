#!/bin/sh
# No poison pills: a step that fails twice with the same inputs on a healthy machine ends its trial,
# and the run goes on.
. "$(dirname "$0")/../lib.sh"
fake_tree

try() { # try STEP:WHAT: up to three makes
	rm -rf trials champion
	: >"$FAKE_CALLS"
	for n in 1 2 3; do
		FAKE_DO=$1 FAKE_TRIAL=0001 iterate --N=2 >"$work/log" 2>&1 && return 0
	done
	return 1
}
verdict_of() { jq -r '[.verdict, .reason.code, .tool.name] | join(" ")' "trials/0001/$1.json"; }

for step in a0/propose a0/guard a0/unittest tune judge bench; do
	ok "$step fails: the run ends" try $step:fail
	ok "$step fails: invalid, by the wrapper" same 'invalid run.harness run' "$(verdict_of $step)"
	ok "$step fails: tried twice" same 2 "$(calls "0001 $step")"
	ok "$step fails: closed and not charged" \
		jq -e '.verdict == "invalid" and (.data.charged | not)' trials/0001/promote.json
	ok "$step fails: the next trial ran" test -s trials/0002/promote.json
done
ok "a child that dies: the run ends" try judge:child
ok "a child that dies: reject" same 'reject run.child_died run' "$(verdict_of judge)"
ok "a child that dies: charged" jq -e '.data.charged' trials/0001/promote.json
ok "a stage that crashes" try judge:crash
ok "a stage that crashes: invalid" same 'invalid run.harness run' "$(verdict_of judge)"
for step in a0/propose judge; do
	ok "$step killed from outside: the run stops each time" not try $step:killed
	ok "$step killed from outside: the trial stays open" not test -e trials/0001/$step.json
	ok "$step killed from outside: it goes on afterwards" iterate --N=2
	ok "$step killed from outside: no harm done" jq -e '.verdict != "invalid"' trials/0001/promote.json
done
ok "a stage that writes nothing" try guard:mute
rm -rf trials; ok "a stage that writes nothing at a0" try a0/guard:mute
ok "a stage that writes nothing: invalid" same 'invalid run.harness run' "$(verdict_of a0/guard)"
ok "try again is no failure: the run stops" not try judge:again
ok "try again: exit 75" code 75 env FAKE_DO=judge:again "$bin/iterate" --DEVICE=sim --PROPOSER=sweep --N=2
ok "try again: the trial stays open" not test -e trials/0001/judge.json
ok "and it goes on when it can" iterate --N=2
TS_RETRIES=2 try judge:again
ok "the wrapper itself waits and tries again" same 9 "$(calls '0001 judge')"
finish
