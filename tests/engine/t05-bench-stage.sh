#!/bin/sh
# t05-bench-stage.sh - bench and confirm of an engine problem, as programs, on a record whose steps before stand for themselves:
# engines of known speed against the baseline of the spec.
#
# SPDX-License-Identifier: MIT
. "$(dirname "$0")/../lib.sh"
real_tree
cc=${CC:-cc} flags="-std=gnu11 -O2 -Wall -Wextra -Werror -I$root/stages/engine -I$root/tests/engine"
"$bin/iterate" --SPEC=vector_add --N=1 --DEVICE=sim --PROPOSER=sweep >"$work/iterate" 2>&1 || cat "$work/iterate"
sha() { sha256sum "$1" | cut -d ' ' -f 1; }
edit() { jq -c "$2" "$1" >"$work/edited" && cp "$work/edited" "$1"; }
# One file: what paced.c includes is put in its place.
paced() { # DEFINE...
	for define; do echo "#define ${define%=*} ${define#*=}"; done
	sed '/#include "..\/..\/specs/,$d' "$root/tests/engine/paced.c"
	cat "$root/specs/qwen3-tiny/baseline/engine.c"
}

run=trials/runs/r0001
cat >$run/spec/spec.json <<'END'
{"schema": "touchstone/spec/1", "kind": "engine", "name": "vector_add", "description": "a small model", "language": "c",
 "model": {"family": "qwen3", "shape": "tiny", "seed": 1},
 "workloads": {"public": [{"name": "two", "batch": 2, "prompt": 4, "steps": 16}, {"name": "three", "batch": 3, "prompt": 5, "steps": 16}],
               "proxy": [{"name": "secret", "batch": 1, "prompt": 9, "steps": 8}],
               "odd": [{"name": "uneven", "batch": 3, "prompt": 7, "steps": 5}],
               "tiny": [{"name": "least", "batch": 4, "prompt": 1, "steps": 17}]},
 "limits": {"load_s": 20, "step_s": 2}}
END
mkdir -p $run/spec/baseline
paced PACE_US=4400 >$run/spec/baseline/engine.c
edit $run/run.json ".settings.device=\"emu\" | .spec_sha256=\"$(sha $run/spec/spec.json)\" |
	.pins.spec={\"spec.json\": .spec_sha256, \"baseline/engine.c\": \"$(sha $run/spec/baseline/engine.c)\"}"
edit trials/0001/trial.json '.device="emu"'
cp trials/0001/promote.json "$work/promote"
rm -rf trials/0001/bench* trials/0001/confirm* trials/0001/promote.json trials/0001/candidate trials/0001/artefact
cp -r trials "$work/template"

# engine DEFINE...: a record whose candidate is that engine, judged.
engine() {
	rm -rf trials
	cp -r "$work/template" trials
	mkdir -p trials/0001/candidate trials/0001/artefact
	paced "$@" >trials/0001/candidate/engine.c
	# shellcheck disable=SC2086
	$cc $flags trials/0001/candidate/engine.c -lm -o trials/0001/artefact/engine || echo "does not compile"
	c=$(sha trials/0001/candidate/engine.c) a=$(sha trials/0001/artefact/engine)
	edit trials/0001/tune.json ".outputs={\"candidate/engine.c\":\"$c\",\"artefact/engine\":\"$a\"}"
	jq -c '.verdict="pass" | .outputs={} | .data={}' trials/0001/tune.json | jq -c '.stage="judge"' >trials/0001/judge.json
}
bench=trials/0001/bench.json confirm=trials/0001/confirm.json
said() { jq -r '.verdict + " " + .reason.code' "$1"; }
agrees() { "$bin/recheck" "$1" >"$work/recheck" || true; cat "$work/recheck"; grep -q "agrees$" "$work/recheck"; }
# until WANT FILE OPTION...: times are real, and a machine that others use may need another go to see them.
until_said() {
	for go in 1 2 3 4; do
		rm -f "$2" "${2%.json}".*
		"$bin/bench" $3 "$2"
		[ "$(said "$2")" = "$1" ] && break
	done
	said "$2"
}

engine PACE_US=4000
ok "10 % faster than the baseline passes" same "pass ok" "$(until_said "pass ok" $bench)"
ok "... by 10 %" jq -e '.data.ratio > 1.05 and .data.ratio < 1.16' $bench
ok "... and recheck agrees" agrees $bench
ok "registered before, ticks and batches beside it" \
	jq -e '.outputs | has("bench.prereg.json") and has("bench.raw") and has("bench.engine.jsonl")' $bench
ok "signed, its key published" jq -e '(.mac | length == 64) and (.data.stage_key | length == 64)' $bench
ok "real times, not emulated" jq -e '.emulated == false and .device.kind == "host"' $bench
ok "champion, candidate and model are on record" jq -e '.inputs | (.champion, .candidate, .artefact, .model) | length == 64' $bench
ok "the score of each arm" jq -e '.data.engine.score | .candidate > .champion and .native == .champion' $bench
ok "proxies have no name" same "two three proxy_0" "$(jq -r '[.data.decide.guards[].name] | join(" ")' $bench)"
ok "every token was looked at" jq -e '.data.tokens_replayed > 0' $bench
ok "confined" jq -e '.isolation | index("no_new_privs") != null and index("seccomp") != null' $bench
ok "it is confirmed" same "pass ok" "$(until_said "pass ok" $confirm --confirm)"
ok "... with what is held out" same "two three proxy_0 held_out_0" "$(jq -r '[.data.confirm.guards[].name] | join(" ")' $confirm)"
ok "... under another key" jq -e --arg k "$(jq -r .data.stage_key $bench)" '.data.stage_key != $k' $confirm
ok "... and recheck agrees" agrees $confirm

engine PACE_US=4640
ok "5 % slower is rejected" same "reject bench.slower" "$(until_said "reject bench.slower" $bench)"
engine PACE_US=4000 WRONG=4
"$bin/bench" $bench
ok "a wrong token among the timed ones" same "reject bench.wrong_output" "$(said $bench)"

# A champion of another trial, a little faster than the baseline, with a file below kernels/.
engine PACE_US=3800
mkdir -p trials/0002/candidate/kernels
{ echo '#include "kernels/nothing.h"'; paced PACE_US=4180; } >trials/0002/candidate/engine.c
echo '/* nothing */' >trials/0002/candidate/kernels/nothing.h
champion=$({ printf 'engine.c\0%s\n' "$(sha trials/0002/candidate/engine.c)"
	printf 'kernels/nothing.h\0%s\n' "$(sha trials/0002/candidate/kernels/nothing.h)"; } | sha256sum | cut -d' ' -f1)
jq -c --arg c "$champion" '.trial="0002" | .data.after.champion={trial: "0002", candidate_sha256: $c}' "$work/promote" >trials/0002/promote.json
edit $run/run.json '.state_from="0002"'
ok "10 % faster than that champion passes" same "pass ok" "$(until_said "pass ok" $bench)"
ok "... which is faster than the native engine beside them" \
	jq -e '(.data.arms | length) == 3 and (.data.engine.score | .candidate > .champion and .champion > .native)' $bench
ok "... and recheck agrees" agrees $bench
echo >>trials/0002/candidate/kernels/nothing.h
rm $bench
ok "a champion that is not the one recorded is refused" code 3 "$bin/bench" $bench

engine PACE_US=4400
cp $run/spec/baseline/engine.c trials/0001/candidate/engine.c
edit trials/0001/tune.json ".outputs[\"candidate/engine.c\"]=\"$(sha $run/spec/baseline/engine.c)\""
"$bin/bench" $bench
ok "the baseline itself" same "reject bench.below_margin" "$(said $bench)"
finish
