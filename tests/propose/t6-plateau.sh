#!/bin/sh
# t6-plateau.sh - PLATEAU: after so many trials without a keep the search widens, after as many again it stops; the
# count follows from the record, so that a run that was killed goes on alike.
# SPDX-License-Identifier: MIT
cd "$(dirname "$0")/../.." || exit 1
. tests/propose/lib.sh
build_server || { echo "Bail out! no test server"; exit 1; }
for p in iterate run guard judge bench promote; do
	[ -x "$BIN/$p" ] || { echo "1..0 # SKIP $BIN/$p is not built"; exit 0; }
done
case $BUILD in *-san) SAN=1; export SAN ;; esac
tree() {
	cd "$ROOT" || exit 1
	rm -rf "$W"; mkdir -p "$W"
	for part in Makefile tools stages specs tests; do ln -s "$ROOT/$part" "$W/$part"; done
	cp -r "$ROOT/prompts" "$W/prompts"
	jq '.extra={"temperature":0.7,"top_p":0.9}|.widen={"temperature":1.3,"model":"no"}' "$ROOT/prompts/profiles/openai.json" \
		>"$W/prompts/profiles/openai.json"
	ln -s "$BUILD" "$W/$(basename "$BUILD")"
	cd "$W" || exit 1
}
iterate() { # NAME=VALUE...
	OPENAI_BASE_URL=http://127.0.0.1:${PORT:-9}/v1 OPENAI_API_KEY=sk-not-a-secret OPENAI_MODEL=scripted \
		make iterate DEVICE=sim SPEC=matmul "$@" >"$T/out" 2>&1; CODE=$?
}
states() { for i in "$@"; do jq -r '.data.plateau.state // "usual"' "trials/$i/a0/propose.json"; done | paste -sd' '; }
codes() { for i in "$@"; do jq -r .reason.code "trials/$i/promote.json"; done | paste -sd' '; }
bad() { # ITEM: an answer that guard rejects, another one each time
	jq -n -c --arg t "{\"item\": \"$1\"}
\`\`\`cuda kernel.cu
#include \"x.h\"
int x$1;
\`\`\`" '{text:$t}'
}

# ---- a model that finds nothing ----
serve "$(for i in 1 2 3 4 5 6 7 8; do bad "i$i"; done | jq -s -c '{replies:.}')"
tree
iterate N=7 PLATEAU=2 WIDTH=1
same "the run ends as one that is done" "0 7" "$CODE $(ls trials/*/promote.json | wc -l | tr -d ' ')"
same "usual, widened, stopped" "usual usual widened widened stopped stopped stopped" "$(states 0001 0002 0003 0004 0005 0006 0007)"
same "no call was made for what was stopped" 4 "$(calls)"
same "stopped trials have a code, and are not charged" "propose.plateau propose.plateau 4" \
	"$(codes 0005 0007) $(jq .data.after.charged trials/0007/promote.json)"
same "and are no news for later prompts" "0004" "$(jq -r '.data.after.recent[0]' trials/0007/promote.json)"
same "the count is in the record" '{"run":"r0001","dry":4}' "$(jq -c .data.after.plateau trials/0007/promote.json)"
same "the log has it" "widened stopped" "$(jq -r 'select(.trial=="0003" or .trial=="0006").plateau.state' trials/log.jsonl | paste -sd' ')"
check "the summary gives the reason" grep -q 'plateau   stopped after 4 of 7 trials: plateau: 4 trials in a row were not kept, the second half of them widened (PLATEAU=2)' "$T/out"
make status >"$T/status" 2>&1
check "so does status" grep -q 'plateau   stopped after 4 of 7' "$T/status"
check "and the page" grep -q 'propose.plateau' reports/index.html
body() { jq -c '[.temperature,.top_p,.model]' "trials/$1/a0/request.body"; }
same "the temperature, usual" '[0.7,0.9,"scripted"]' "$(body 0002)"
same "the temperature, widened; the model is ours" '[1.3,0.9,"scripted"]' "$(body 0003)"
check "the usual prompt says nothing of it" sh -c "! grep -q '^# Widen' trials/0002/a0/prompt.md"
check "the widened prompt names an item" grep -q 'best the item gemm-tile of the playbook' trials/0003/a0/prompt.md
check "and another one the next time" sh -c "grep -q '^# Widen' trials/0004/a0/prompt.md && ! grep -q 'best the item gemm-tile' trials/0004/a0/prompt.md"

# ---- the next run counts for itself ----
cd "$ROOT" || exit 1
serve "$(for i in 1 2 3; do bad "k$i"; done | jq -s -c '{replies:.}')"
cd "$W" || exit 1
iterate N=1 PLATEAU=2
same "another run begins anew" "usual 1" "$(states 0008) $(jq .data.after.plateau.dry trials/0008/promote.json)"

# ---- killed within the widened part: the same states ----
cd "$ROOT" || exit 1
serve "$(for i in 1 2 3 4 5 6 7 8; do bad "i$i"; done | jq -s -c '{replies:[.[]|.delay_ms=500]}')"
tree
for pause in 1.6 1.2; do
	setsid sh -c "OPENAI_BASE_URL=http://127.0.0.1:$PORT/v1 OPENAI_API_KEY=sk-not-a-secret OPENAI_MODEL=scripted \
		exec make iterate DEVICE=sim SPEC=matmul N=6 PLATEAU=2 WIDTH=1 REPAIRS=0" >"$T/out" 2>&1 &
	pid=$!
	sleep $pause
	kill -9 -$pid 2>/dev/null; wait $pid 2>/dev/null
done
iterate N=6 PLATEAU=2
same "killed and finished, the same states" "0 usual usual widened widened stopped stopped" "$CODE $(states 0001 0002 0003 0004 0005 0006)"
# on a fast machine the first run is over before the second kill, and what comes then is another run
same "no call more" 4 "$(jq -r 'select(.kind == "reserve" and .trial <= "0006").trial' trials/runs/r0001/ledger.jsonl | wc -l | tr -d ' ')"
stop_server

# ---- a keep starts the count again; the other parent, from a record made by hand ----
cd "$ROOT" || exit 1
SPEC=$ROOT/specs/matmul
export PROPOSER_COMMAND="cat >/dev/null; printf '{\"item\":\"x\"}\n\140\140\140cuda kernel.cu\nint x;\n\140\140\140\n'"
# champion ID BEFORE DRY: trial ID was kept; the state after it
champion() {
	mkdir -p "$W/trials/$1/candidate" "$W/trials/$1/a0"
	cp "$SPEC/baseline/kernel.cu" "$SPEC/baseline/plan.json" "$W/trials/$1/candidate/"
	echo "// of trial $1" >>"$W/trials/$1/candidate/kernel.cu"
	c=$(printf 'kernel.cu\0%splan.json\0%s' "$(sha "$W/trials/$1/candidate/kernel.cu")" \
		"$(sha "$W/trials/$1/candidate/plan.json")" | sha256sum | cut -d' ' -f1)
	jq -n --arg c "$c" '{data:{candidate_sha256:$c}}' >"$W/trials/$1/a0/propose.json"
	close_trial "$1" pass promote.kept "bench: 1.1x" "[\"$1\"]" "{\"trial\":\"$1\",\"candidate_sha256\":\"$c\"}"
	jq --arg c "$c" --argjson b "$2" --argjson n "$3" '.data.candidate_sha256=$c|.data.champion_before=$b|
		.data.after.plateau={run:"r0001",dry:$n}|.stage="promote"' "$W/trials/$1/promote.json" >"$T/p"
	cp "$T/p" "$W/trials/$1/promote.json"
	jq '.stage="bench"|.data={}' "$T/p" >"$W/trials/$1/bench.json"
}
parents() { jq -r '"\(.parent.from) \(.parent.trial)"' "$W/trials/$1/a0/proposal.json" 2>/dev/null || cat "$T/out"; }
new_run "$SPEC" command 3 1 '.+{plateau:2}'
champion 0001 null 0; champion 0002 '"0001"' 1
propose 0003
same "below the rule the champion is the parent" "champion 0002" "$(parents 0003)"
champion 0002 '"0001"' 2; rm -r "$W/trials/0003/a0"; propose 0003
same "widened for the first time, too" "champion 0002" "$(parents 0003)"
champion 0002 '"0001"' 3; rm -r "$W/trials/0003/a0"; propose 0003
same "then the one that it replaced" "earlier champion 0001" "$(parents 0003)"
check "the prompt says so" grep -q 'not the champion but the earlier champion' "$W/trials/0003/a0/prompt.md"
champion 0002 null 3; rm -r "$W/trials/0003/a0"; propose 0003
same "or the problem's own source" "baseline null" "$(parents 0003)"
champion 0002 null 4; rm -r "$W/trials/0003/a0"; propose 0003
same "then it stops" "0 reject propose.plateau" "$CODE $(verdict 0003)"
champion 0002 null 99999999; rm -r "$W/trials/0003/a0"; propose 0003
same "a count that cannot be is none" "champion 0002" "$(parents 0003)"

# ---- a sweep cannot be widened, and is stopped; what it kept starts the count again ----
tree
iterate PROPOSER=sweep N=25 PLATEAU=3
same "it is stopped after three trials without a keep, counted from the last" \
	"$(jq -s '[.[]|select(.charged)]|(map(.kept)|rindex(true)//-1)+4' trials/log.jsonl)" "$(jq -s '[.[]|select(.charged)]|length' trials/log.jsonl)"
check "the reason is told" grep -q 'plateau: 3 trials in a row were not kept, and this proposer cannot be widened (PLATEAU=3)' "$T/out"
same "a sweep stops without widening" 0 "$(jq -r 'select(.plateau.state=="widened").trial' trials/log.jsonl | wc -l | tr -d ' ')"
cd "$ROOT" || exit 1
done_testing
