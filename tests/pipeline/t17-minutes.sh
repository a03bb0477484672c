#!/bin/sh
# Budgets of wall and GPU minutes: reserved by the median before they are spent, settled after, kept through kills.
# SPDX-License-Identifier: MIT
. "$(dirname "$0")/../lib.sh"
real_tree
iterate() { "$bin/iterate" --SPEC=vector_add --DEVICE=sim --PROPOSER=sweep --SIM_SECONDS=1 "$@"; }
lines() { grep -c "\"kind\":\"$1\"" trials/runs/r0001/minutes.jsonl; }
closed() { ls trials/*/promote.json 2>/dev/null | wc -l | tr -d ' '; }

code_of=0
iterate --N=60 --MAX_MINUTES=0.15 >"$work/first" 2>&1 || code_of=$?
n=$(closed)
ok "a trial that does not fit is not begun, or one is stopped by the alarm: 4 or 75" \
	sh -c "[ $code_of = 4 ] || [ $code_of = 75 ]"
ok "trials were closed, and not all" sh -c "[ $n -ge 2 ] && [ $n -lt 60 ]"
ok "the reason is told" grep -q 'budget max_minutes=0.15 of run r0001: 0.1[0-9]* are charged, the next trial may take 0.0\|MAX_MINUTES is over' "$work/first"
ok "each closed trial was reserved and settled" same "$n" "$(lines settle)"
ok "the second reserves what the first took" \
	same "$(jq -r 'select(.kind=="settle").s' trials/runs/r0001/minutes.jsonl | head -n 1)" \
	"$(jq -r 'select(.kind=="reserve").s' trials/runs/r0001/minutes.jsonl | sed -n 2p)"
ok "the banner names the budget" grep -q 'budget    minutes 0.15' "$work/first"
total=$(jq -s '[.[]|select(.kind!="reserve").s]|add' trials/runs/r0001/minutes.jsonl)
ok "no more than the budget and a little was spent ($total s)" sh -c "echo $total | awk '{exit !(\$1 > 3 && \$1 < 14)}'"
ok "it survives: the next make begins nothing" code 4 iterate --N=60
ok "and closes nothing" same "$n" "$(closed)"

# killed as a whole: what was reserved, and what had passed, stays charged
rm -rf trials champion reports
setsid "$bin/iterate" --SPEC=vector_add --DEVICE=sim --PROPOSER=sweep --SIM_SECONDS=1 --N=60 --MAX_MINUTES=0.3 >/dev/null 2>&1 &
pid=$!
tries=600 # a moment after the third trial was begun
until [ "$(lines settle 2>/dev/null)" = 2 ] && tail -n 1 trials/runs/r0001/minutes.jsonl | grep -q reserve; do
	tries=$((tries - 1))
	[ $tries -gt 0 ] || break
	sleep 0.05
done
kill -9 -$pid 2>/dev/null
wait $pid 2>/dev/null
open=$(jq -s '([.[]|select(.kind=="reserve").trial]-[.[]|select(.kind=="settle").trial])|length' trials/runs/r0001/minutes.jsonl)
before=$(jq -s '[.[]|select(.kind=="settle").s]|add' trials/runs/r0001/minutes.jsonl)
reserved=$(jq -s '. as $l|[$l[]|select(.kind=="reserve")|select(.trial as $t|$l|map(select(.kind=="settle" and .trial==$t))|length==0).s]|add // 0' trials/runs/r0001/minutes.jsonl)
sleep 1
iterate --N=60 >"$work/second" 2>&1
spent=$(jq -s '[.[]|select(.kind!="reserve").s]|add' trials/runs/r0001/minutes.jsonl)
ok "one was in flight ($open), $before s settled, $reserved s reserved" same "$open" 1
ok "the run stopped within what was left ($spent s and $reserved s of 18)" \
	sh -c "echo $spent $reserved | awk '{exit !(\$1 + \$2 > 8 && \$1 + \$2 < 24)}'"

ok "two units of one budget are refused" code 2 "$bin/iterate" --NEW=1 --SPEC=vector_add --DEVICE=sim --PROPOSER=sweep \
	--MAX_GPU_S=5 --MAX_GPU_MINUTES=1
ok "a budget of nothing is refused" code 2 "$bin/iterate" --NEW=1 --SPEC=vector_add --DEVICE=sim --MAX_MINUTES=0
finish
