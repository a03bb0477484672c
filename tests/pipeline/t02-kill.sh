#!/bin/sh
# kill -9 at every instant of a step; the rerun ends the same and repeats no finished step.
. "$(dirname "$0")/../lib.sh"
case $build in *-san) skip_all "LD_PRELOAD and sanitizers do not mix" ;; esac
fake_tree

reset() {
	rm -rf trials champion
	: >"$FAKE_CALLS"
}

iterate --N=4 >/dev/null 2>&1
essence >"$work/want"
ok "the undisturbed run keeps one" grep -q keep trials/index.tsv

# The four instants: before the first byte, after it and before it is durable, before the rename,
# after the rename.
for step in a0/propose a0/guard a0/unittest tune judge bench confirm promote; do
	for at in write:$step.json.tmp fsync:$step.json.tmp rename:$step.json renamed:$step.json; do
		reset
		TS_PRELOAD=$build/test/fault.so TS_FAULT_AT=$at iterate --N=4 >/dev/null 2>&1
		ok "killed at $at: the run goes on" iterate --N=4
		essence >"$work/got"
		ok "killed at $at: it ends the same" cmp "$work/want" "$work/got"
		ok "killed at $at: nothing temporary is left" \
			same 0 "$(find trials champion -name '*.tmp.*' | wc -l)"
		# Steps of earlier trials and of this one before the kill ran once.
		[ $step = a0/propose ] || ok "killed at $at: no second proposal" \
			same 1 "$(calls '0003 a0/propose')"
	done
done

# Killed in what follows from a promote verdict: the verdict stands, the rest is rolled forward.
for at in write:log.jsonl write:index.tsv fsync:log.jsonl rename:champion; do
	reset
	TS_PRELOAD=$build/test/fault.so TS_FAULT_AT=$at iterate --N=4 >/dev/null 2>&1
	sum=$(sha256sum <trials/0001/promote.json)
	ok "killed at $at: the run goes on" iterate --N=4
	essence >"$work/got"
	ok "killed at $at: it ends the same" cmp "$work/want" "$work/got"
	ok "killed at $at: the verdict stood" same "$sum" "$(sha256sum <trials/0001/promote.json)"
done

# kill -9 of make, of iterate, of the wrapper, of the stage while a stage is at work.
wait_for() { # wait_for SECONDS COMMAND...: until it is true
	tries=$(($1 * 20))
	shift
	while [ $tries -gt 0 ]; do
		"$@" >/dev/null 2>&1 && return 0
		sleep 0.05
		tries=$((tries - 1))
	done
	return 1
}
# By /proc: a bare machine has no pgrep.
child_of() { cat /proc/[0-9]*/stat 2>/dev/null | awk -v parent="$1" '$4 == parent { print $1; exit }'; }
gone() { ! kill -0 "$1" 2>/dev/null || grep -q '^State:.Z' "/proc/$1/status" 2>/dev/null; }

for victim in iterate make wrapper stage; do
	reset
	FAKE_DO=judge:sleep FAKE_TRIAL=0003 "$bin/iterate" --DEVICE=sim --PROPOSER=sweep --N=4 \
		>/dev/null 2>&1 &
	top=$!
	wait_for 20 grep -qx '0003 judge' "$FAKE_CALLS"
	make_pid=$(child_of $top)
	wrapper_pid=$(child_of "$make_pid")
	stage_pid=$(child_of "$wrapper_pid")
	case $victim in
	iterate) kill -9 $top ;;
	make) kill -9 "$make_pid" ;;
	wrapper) kill -9 "$wrapper_pid" ;;
	stage) kill -9 "$stage_pid" ;;
	esac
	wait $top 2>/dev/null
	for pid in $make_pid $wrapper_pid $stage_pid; do
		wait_for 5 gone "$pid"
	done
	ok "kill -9 of $victim: the stage is gone" gone "$stage_pid"
	ok "kill -9 of $victim: so are make and wrapper" eval 'gone $make_pid && gone $wrapper_pid'
	ok "kill -9 of $victim: the run says what is done" has 'resuming: 2 of 4 trials done, 2 to go' \
		iterate --N=4
	essence >"$work/got"
	ok "kill -9 of $victim: it ends the same" cmp "$work/want" "$work/got"
	ok "kill -9 of $victim: no second proposal" same 1 "$(calls '0003 a0/propose')"
done

# Ctrl-C reaches the whole group; the last line says how to go on.
reset
FAKE_DO=judge:sleep FAKE_TRIAL=0003 setsid "$bin/iterate" --DEVICE=sim --PROPOSER=sweep --N=4 \
	>"$work/stopped" 2>&1 &
top=$!
wait_for 20 grep -qx '0003 judge' "$FAKE_CALLS"
kill -s INT -- -$top # the shell's own: a bare machine has no other
wait $top 2>/dev/null
ok "Ctrl-C says how to go on" grep -q 'stopped; `make iterate` continues at 0003' "$work/stopped"
ok "and it does" iterate --N=4
finish
