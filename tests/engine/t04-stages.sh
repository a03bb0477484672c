#!/bin/sh
# t04-stages.sh - unittest and judge of an engine problem, as programs, on a record whose guard and tune stand for
# themselves: what they write for an honest engine, and with which code each kind of wrong one ends.
#
# SPDX-License-Identifier: MIT
. "$(dirname "$0")/../lib.sh"
real_tree
cc=${CC:-cc} flags="-std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra -Werror -I$root/stages/engine"
"$bin/iterate" --SPEC=vector_add --N=1 --DEVICE=sim --PROPOSER=sweep >"$work/iterate" 2>&1 || cat "$work/iterate"
ok "MODEL_DIR is refused for a problem without a model" code 2 "$bin/iterate" --SPEC=vector_add --N=1 --DEVICE=sim --MODEL_DIR=/tmp
sha() { sha256sum "$1" | cut -d ' ' -f 1; }
edit() { jq -c "$2" "$1" >"$work/edited" && cp "$work/edited" "$1"; }

run=trials/runs/r0001
cat >$run/spec/spec.json <<'END'
{"schema": "touchstone/spec/1", "kind": "engine", "name": "vector_add", "description": "a small model", "language": "c",
 "model": {"family": "qwen3", "shape": "tiny", "seed": 1},
 "workloads": {"public": [{"name": "one", "batch": 1, "prompt": 40, "steps": 32}, {"name": "four", "batch": 4, "prompt": 24, "steps": 16}],
               "tiny": [{"name": "least", "batch": 1, "prompt": 1, "steps": 17}, {"name": "odd", "batch": 3, "prompt": 37, "steps": 16}]},
 "limits": {"load_s": 20, "step_s": 0.2}}
END
edit $run/run.json ".settings.device=\"emu\" | .spec_sha256=\"$(sha $run/spec/spec.json)\" | .pins.spec[\"spec.json\"]=.spec_sha256"
edit trials/0001/trial.json '.device="emu"'
rm -rf trials/0001/*/unittest.json trials/0001/judge.json trials/0001/candidate trials/0001/artefact
cp -r trials "$work/template"

# engine NAME [WHAT]: a record whose candidate is that cheat, after guard, and after tune.
engine() {
	rm -rf trials
	cp -r "$work/template" trials
	[ -x "$work/$1" ] || $cc $flags -DCHEAT="$1" "$root/tests/engine/cheat.c" -lm -lpthread -o "$work/$1"
	for part in "" a0/; do
		mkdir -p "trials/0001/${part}candidate" "trials/0001/${part}artefact"
		echo "/* $1 */" >"trials/0001/${part}candidate/engine.c"
		cp "$work/$1" "trials/0001/${part}artefact/engine"
	done
	c=$(sha trials/0001/candidate/engine.c) a=$(sha trials/0001/artefact/engine)
	edit trials/0001/a0/guard.json ".outputs={\"a0/candidate/engine.c\":\"$c\",\"a0/artefact/engine\":\"$a\"}"
	edit trials/0001/tune.json ".outputs={\"candidate/engine.c\":\"$c\",\"artefact/engine\":\"$a\"}"
}
unittest=trials/0001/a0/unittest.json judge=trials/0001/judge.json
unit() { "$bin/unittest" $unittest; }
judge() { # the step before it passed, whatever unittest would have said
	[ -f $unittest ] || jq -c '.stage="unittest" | .outputs={}' trials/0001/a0/guard.json >$unittest
	"$bin/judge" $judge
}
# What is said unasked is too early or too much, by when it arrives.
said() { jq -r '.verdict + " " + .reason.code' "$1" | sed 's/engine_extra/engine_early/'; }

engine honest
ok "unittest" unit
ok "an honest engine passes it" same "pass ok" "$(said $unittest)"
ok "and its log names the workloads" grep -q "ok   odd: batch 3, prompt 37, steps 16" trials/0001/a0/unittest.log
ok "judge" judge
ok "an honest engine passes it" same "pass ok" "$(said $judge)"
ok "signed, and its key published" jq -e '(.mac | length == 64) and (.data.stage_key | length == 64)' $judge
ok "real times, not emulated" jq -e '.emulated == false and .device.kind == "host"' $judge
ok "candidate, artefact and model are on record" jq -e '.inputs | (.candidate, .artefact, .model) | length == 64' $judge
ok "one model" same "$(jq -r .inputs.model $unittest)" "$(jq -r .inputs.model $judge)"
ok "every id of three batches" jq -e '.data.regret.tokens == 192 and .data.repeats and (.data.workloads | map(.answered) == [3, 3])' $judge
ok "confined" jq -e '.isolation | index("no_new_privs") != null and index("seccomp") != null' $judge
key=$(jq -r .data.stage_key $judge)
engine honest
judge 2>/dev/null
ok "the same key, the same prompts: the same figures" same "$(jq -c '[.data.stage_key, .data.honest]' $judge)" "$(engine honest; judge; jq -c '[.data.stage_key, .data.honest]' $judge)"
ok "of this trial and step" same "$key" "$(jq -r .data.stage_key $judge)"

while read -r name code; do
	engine "$name"
	unit
	ok "unittest: $name" same "reject unittest.$code" "$(said $unittest)"
	rm -f $unittest
	judge
	ok "judge: $name" same "reject judge.$code" "$(said $judge)"
done <<'END'
crash engine_died
shorter engine_died
hang engine_timeout
early engine_early
beyond engine_range
greeting engine_garbage
first margin
memoriser margin
late margin
END
engine constant
unit
ok "unittest says where and what" grep -q "workload '.*sequence [0-2], step [0-9]*: it said 7 where the model says" trials/0001/a0/unittest.log
engine late
judge
ok "judge says only which workload" same "wrong at workload 'one': an id is not the model's: its logit is further from the best than honest rounding explains" "$(jq -r .reason.message $judge)"
engine honest
echo x >>trials/0001/artefact/engine
ok "another artefact than recorded is refused" code 3 "$bin/judge" $judge
engine honest
jq -c '.stage="unittest" | .outputs={} | .inputs.model="'"$key"'"' trials/0001/a0/guard.json >$unittest
ok "another model than the trial's is refused" code 3 "$bin/judge" $judge
finish
