#!/bin/sh
# t3-pipeline.sh - whole runs with a model (the test server's), a command, and a sweep to its end,
# on the simulated device; kills while a reply is under way.
# SPDX-License-Identifier: MIT
cd "$(dirname "$0")/../.." || exit 1
. tests/propose/lib.sh
build_server || { echo "Bail out! no test server"; exit 1; }
for p in iterate run guard judge bench promote; do
	[ -x "$BIN/$p" ] || { echo "1..0 # SKIP $BIN/$p is not built"; exit 0; }
done

KEY=sk-live-$$-abcdefgh
tree() {
	rm -rf "$W"; mkdir -p "$W"
	for part in Makefile tools stages specs tests; do ln -s "$ROOT/$part" "$W/$part"; done
	cp -r "$ROOT/prompts" "$W/prompts"
	ln -s "$BUILD" "$W/$(basename "$BUILD")"
	cd "$W" || exit 1
}
case $BUILD in *-san) SAN=1; export SAN ;; esac
iterate() { # NAME=VALUE...
	OPENAI_BASE_URL=http://127.0.0.1:$PORT/v1 OPENAI_API_KEY=$KEY OPENAI_MODEL=scripted \
		make iterate DEVICE=sim SPEC=matmul "$@" >"$T/out" 2>&1; CODE=$?
}
closed() { ls trials/*/promote.json 2>/dev/null | wc -l | tr -d ' '; }

(cd "$ROOT" && :); serve --model
tree
iterate N=6 WIDTH=2
same "six trials by a model, the default when it is configured" "0 6 6" "$CODE $(closed) $(calls)"
same "who proposed" openai "$(jq -r .settings.proposer trials/runs/r0001/run.json)"
check "the key is nowhere in the record" sh -c "! grep -rl '$KEY' trials reports champion"
check "nor in the output" sh -c "! grep '$KEY' '$T/out'"
same "every call is settled" "6 6" "$(grep -c '"kind":"reserve"' trials/runs/r0001/ledger.jsonl) $(grep -c '"kind":"settle"' trials/runs/r0001/ledger.jsonl)"
kept=$(jq -s '[.[]|select(.kept)]|length' trials/log.jsonl)
percent=$(jq -s '[.[]|select(.kept).ratio]|(reduce .[] as $r (1;.*$r)-1)*100' trials/log.jsonl)
tokens=$(tail -n 1 trials/runs/r0001/ledger.jsonl | jq '.total.tokens_in+.total.tokens_out')
if [ "$kept" != 0 ]; then
	want=$(echo "$tokens $percent" | awk '{printf "cost      %.0f tokens", $1/$2}')
	check "what an accepted percent cost: $want" grep -qF "$want, " "$T/out"
else
	check "nothing was kept: no cost of an accepted percent" sh -c "! grep -q 'cost      ' '$T/out'"
fi
jq -r .prompt_sha256 trials/000?/a0/proposal.json >"$T/first"

# The same run again, elsewhere, with make -j: the same prompts.
serve --model; tree
iterate N=6 WIDTH=2 -j4
same "the same prompts again" "$(cat "$T/first")" "$(jq -r .prompt_sha256 trials/000?/a0/proposal.json)"

# Kill everything of make while replies are under way; no reply is bought twice.
cd "$ROOT" || exit 1
serve '{"replies":[{"model":true,"delay_ms":600}]}'
tree
for pause in 1.0 0.7 0.4; do
	setsid sh -c "OPENAI_BASE_URL=http://127.0.0.1:$PORT/v1 OPENAI_API_KEY=$KEY OPENAI_MODEL=scripted \
		exec make iterate DEVICE=sim SPEC=matmul N=5 WIDTH=1" >"$T/out" 2>&1 &
	pid=$!
	sleep $pause
	kill -9 -$pid 2>/dev/null; wait $pid 2>/dev/null
done
iterate N=5 WIDTH=1
same "killed three times, finished" "0 5" "$CODE $(closed)"
same "no reply was bought twice: the orphaned client finished it" 5 "$(calls)"
same "one reply a trial" 5 "$(ls trials/*/a0/reply.json | wc -l | tr -d ' ')"

# A model that only talks: rejects, and the run goes on.
cd "$ROOT" || exit 1
serve '{"replies":[{"text":"let me think"},{"text":"```cuda kernel.cu\nint x","finish_reason":"length"},{"model":true}]}'
tree
iterate N=3
same "useless replies are results" "0 propose.no_files propose.truncated" "$CODE $(jq -r .reason.code trials/0001/promote.json trials/0002/promote.json | paste -sd' ')"
check "the summary says how many were unusable" grep -q 'replies   2 of 3 had no usable candidate (67 %)' "$T/out"
check "and the page, by model" grep -q '<td>openai openai/scripted</td>.*<td class=n>2 of 3 (67 %)' reports/index.html

# No server: nothing is written, the code is 75 and the next make goes on.
stop_server; PORT=9
tree
jq '.limits={"retries":0}' prompts/profiles/openai.json >"$T/p" && cp "$T/p" prompts/profiles/openai.json
iterate N=1
check "no network: make fails and says 75" sh -c "[ $CODE != 0 ] && grep -q 75 '$T/out'"
check "no verdict" test ! -e trials/0001/a0/propose.json
cd "$ROOT" || exit 1

# A command, and a sweep to the end of its space.
tree
printf '#!/bin/sh\ncat >/dev/null\nprintf "{\\"item\\": \\"from a command\\"}\\n\\140\\140\\140json plan.json\\n"\ncat /tmp/none 2>/dev/null; printf "%%s" "$PLAN_TEXT"; printf "\\n\\140\\140\\140\\n"\n' >"$T/agent"
chmod 755 "$T" "$T/agent"
PLAN_TEXT=$(jq -c '.tunables.TX.value=32' "$ROOT/specs/matmul/baseline/plan.json") PROPOSER_ENV=PLAN_TEXT \
	PROPOSER_COMMAND=$T/agent make iterate DEVICE=sim SPEC=matmul PROPOSER=command N=1 >"$T/out" 2>&1
same "a command through make" "from a command" "$(jq -r .item trials/0001/a0/proposal.json 2>/dev/null)"
cd "$ROOT" || exit 1
tree
rm specs; mkdir specs; cp -r "$ROOT/specs/matmul" specs/matmul
jq '.tunables={"TX":{"values":[8,16,32],"value":16},"TY":{"values":[16],"value":16},"TM":{"values":[1],"value":1},"TN":{"values":[1],"value":1},"BK":{"values":[16],"value":16}}|.constraints=[]' \
	"$ROOT/specs/matmul/baseline/plan.json" >specs/matmul/baseline/plan.json
make iterate DEVICE=sim SPEC=matmul PROPOSER=sweep N=9 >"$T/out" 2>&1; CODE=$?
check "a sweep ends with its space" grep -q propose.space_done "$T/out"
check "the summary says so" grep -q 'space     done after [2-3] of 9 trials: all [0-9]* legal configurations have been tried' "$T/out"
same "two configurations were tried" 2 "$(jq -r .candidate_sha256 trials/*/a0/proposal.json | sort -u | wc -l | tr -d ' ')"
echo "# exit $CODE, $(ls -d trials/0* | wc -l) trials"
cd "$ROOT" || exit 1
done_testing
