#!/bin/sh
# t06-iterate.sh - an engine problem through the whole loop: proposed, compiled, judged, timed, kept, in the record.
#
# Engines of known speed (paced.c), so that a busy machine hardly shows; a faster one may need another go to be kept.
#
# SPDX-License-Identifier: MIT
. "$(dirname "$0")/../lib.sh"
real_tree
rm specs
mkdir -p specs/small/baseline engines/0001 engines/0002 engines/0003/kernels engines/0005 engines/0006
paced() { # DEFINE...
	for define; do echo "#define ${define%=*} ${define#*=}"; done
	sed '/#include "..\/..\/specs/,$d' "$root/tests/engine/paced.c"
	cat "$root/specs/qwen3-tiny/baseline/engine.c"
}
cat >specs/small/spec.json <<'END'
{"schema": "touchstone/spec/1", "kind": "engine", "name": "small", "description": "a small model", "language": "c",
 "model": {"family": "qwen3", "shape": "tiny", "seed": 1},
 "workloads": {"public": [{"name": "two", "batch": 2, "prompt": 4, "steps": 16}, {"name": "three", "batch": 3, "prompt": 5, "steps": 16}],
               "odd": [{"name": "uneven", "batch": 3, "prompt": 7, "steps": 5}],
               "tiny": [{"name": "least", "batch": 1, "prompt": 1, "steps": 17}, {"name": "odd", "batch": 3, "prompt": 37, "steps": 16}]},
 "gates": {"spread": 1}, "limits": {"load_s": 20, "step_s": 2}}
END
paced PACE_US=4400 >specs/small/baseline/engine.c
echo 'int main(void) { return 0 }' >engines/0001/engine.c
{ echo '#include <sys/socket.h>'; paced PACE_US=3000; } >engines/0002/engine.c
{ paced PACE_US=3000; echo '#include "kernels/more.h"'; } >engines/0003/engine.c
echo '/* a header of its own */' >engines/0003/kernels/more.h
echo 'a third faster' >engines/0003.txt
cp -r engines/0003 engines/0004
{ paced PACE_US=2200; } >engines/0005/engine.c
echo 'all:' >engines/0005/Makefile
# Right, and it reads behind its memory once a batch.
{
	cat <<'END'
#include <stdlib.h>
static volatile int beside;
static void peek(void)
{
	int *volatile p = malloc(4 * sizeof *p);
	p[3] = 1;
	beside = p[3 + p[3]];
	free(p);
}
END
	paced PACE_US=3000 | sed 's/^	moment.tv_nsec += LATE_US/	peek();&/'
} >engines/0006/engine.c
it() { "$bin/iterate" --SPEC=small --PROPOSER=replay --REPLY="$work/tree/engines" "$@"; }

ok "an engine is not judged elsewhere" code 2 it --N=1 --RUN_GPU=loopback
ok "nor by a proposer that nobody knows" code 2 "$bin/iterate" --SPEC=small --PROPOSER=oracle --N=1
ok "a folder of engines answers to no error" code 2 it --N=1 --REPAIRS=1
ok "nor on another device" code 2 it --N=1 --DEVICE=sim
ok "MODEL_DIR is refused for a problem without a model" code 2 sh -c "mv specs kept; ln -s $root/specs specs
	$bin/iterate --SPEC=vector_add --N=1 --DEVICE=sim --MODEL_DIR=/tmp; c=\$?; rm specs; mv kept specs; exit \$c"
code() { jq -r '.verdict + " " + .reason.code' "trials/$1/promote.json"; }
"$bin/make-checkpoint" tiny "$work/model" --seed 3 >/dev/null
it --N=6 --MODEL_DIR="$work/model" >"$work/first" 2>&1 || cat "$work/first"
ok "the run is held to the checkpoint it was given" same "$(jq -r .settings.model_sha256 trials/runs/r0001/run.json)" \
	"$(jq -r .inputs.model trials/0003/judge.json)"
ok "the compiler's words name no folder of this machine" not grep -q "/src/\|/tmp" trials/0001/a0/guard.log
ok "... and say where" grep -q "^engine.c:1:" trials/0001/a0/guard.log
ok "one that does not compile" same "reject compile.error" "$(code 0001)"
ok "one that asks for sockets" same "reject guard.include" "$(code 0002)"
ok "one with a file too many" same "reject propose.file_name" "$(code 0005)"
ok "one that reads behind its memory" same "reject unittest.sanitizer" "$(code 0006)"
ok "... is told what" has heap-buffer-overflow jq -r .reason.message trials/0006/a0/unittest.json
ok "... and where" grep -Eq "in peek engine.c:[0-9]+" trials/0006/a0/unittest.log
ok "... and nothing of this machine" not grep -Eq "$work|/tmp|/src/|/engines/|==[0-9]+==" trials/0006/a0/unittest.log
ok "one that does not is clean" same "sanitized true" "$(jq -r '.data | "\(.coverage) \(.sanitizers)"' trials/0003/a0/unittest.json)"
ok "the same files again" same "reject guard.duplicate" "$(code 0004)"
# Once more from the record: the same sources, prompts and ids.
replay() { "$bin/replay" "--TRIAL=$1" >"$work/replay" 2>&1; }
ok "replay of one that was judged agrees" replay 0003
ok "... step for step" same "guard unittest judge" "$(awk '/ same: pass ok/ {printf "%s%s", s, $1; s = " "}' "$work/replay")"
ok "... asked the same" grep -q "prompts and gates: the same figures" "$work/replay"
ok "... and answered the same" grep -q " ids: the same figures" "$work/replay"
ok "replay of one that does not compile agrees" replay 0001
ok "... that it does not" grep -q "guard *same: reject compile.error" "$work/replay"
cp -r trials "$work/kept"
sed -i 's/PACE_US 3000/PACE_US 3001/' trials/0003/candidate/engine.c
ok "other sources than recorded differ" same 1 "$(replay 0003; echo $?)"
ok "... in words" grep -q "candidate *DIFFERS" "$work/replay"
rm -rf trials && mv "$work/kept" trials
mv "$work/model" "$work/away"
ok "without its checkpoint there is no replay" same 3 "$(replay 0003; echo $?)"
mv "$work/away" "$work/model"
kept=$(jq -r 'select(.kept) | .trial' trials/log.jsonl | tail -n 1)
for go in 1 2 3; do # a machine that others use may spread the times of the fast ones
	[ "$kept" ] && break
	echo "/* go $go */" >>engines/0003/engine.c # the same files would not be tried again
	it --N=5 --NEW=1 >"$work/again" 2>&1
	kept=$(jq -r 'select(.kept) | .trial' trials/log.jsonl | tail -n 1)
done
ok "a faster one is kept" test "$kept"
ok "... by much" test "$(jq "select(.trial == \"$kept\") | .ratio > 1.25" trials/log.jsonl)" = true
ok "... as a champion" cmp "trials/$kept/candidate/engine.c" champion/small/emu/engine.c
ok "... in the history" test "$(git --git-dir trials/history.git show "champion/small/emu:engine.c" | sha256sum)" = \
	"$(sha256sum <champion/small/emu/engine.c)"
ok "its figures are not called emulated" same false "$(jq "select(.trial == \"$kept\") | .emulated" trials/log.jsonl)"
ok "the banner says so, too" grep -q "small on emu (an engine, on this processor)" "$work/first"
ok "a stranger agrees with its timing" "$bin/recheck" "trials/$kept/bench.json" "trials/$kept/confirm.json"
ok "files beside engine.c travel" test -f trials/0003/candidate/kernels/more.h
# The champion frozen: judged and timed once more, into a folder of its own.
freeze() { "$bin/freeze" --SPEC=small --OUT="$work/frozen" "$@" >"$work/freeze" 2>&1; }
ok "freeze" freeze
ok "... has the champion's files" diff -r champion/small/emu/kernels "$work/frozen/kernels"
ok "... as they are" same "$(sha256sum <champion/small/emu/engine.c | cut -d ' ' -f 1)" "$(jq -r '.files["engine.c"]' "$work/frozen/FREEZE.json")"
ok "... nothing but them and FREEZE.json" same "FREEZE.json engine.c kernels" "$(ls "$work/frozen" | xargs)"
ok "... five samples of everything at every workload" jq -e '.times.workloads | map([.champion, .native][] | .total_s, .ttft_s, .tpot_s
	| .samples | length) == [range(18) | 5]' "$work/frozen/FREEZE.json"
ok "... beside the native baseline" jq -e '.times.score_tokens_s | .ratio > 1.25 and .champion > .native' "$work/frozen/FREEZE.json"
ok "... every id that was timed replayed" jq -e '.times.tokens_replayed == 5 * (2 * 16 + 3 * 16 + 3 * 5) and .judge.regret.tokens > 0' "$work/frozen/FREEZE.json"
ok "... with hashes and environment" jq -e '(.sha256 | [.[]] | length == 8 and all(test("^[0-9a-f]{64}$"))) and .environment.compiler != "" and
	.environment.isolation != ""' "$work/frozen/FREEZE.json"
ok "not into a folder that has something in it" same 2 "$(freeze; echo $?)"
rm -r "$work/frozen" && mkdir "$work/frozen"
(sleep 1; echo "/* another */" >>champion/small/emu/engine.c) &
ok "not when the engine changes meanwhile" same 3 "$(freeze; echo $?)"
wait
ok "... nor afterwards" same 3 "$(freeze; echo $?)"
ok "... in words" grep -q "engine.c' has changed since it was judged" "$work/freeze"
ok "... and nothing is left" same "" "$(ls -A "$work/frozen" "$work" | grep tmp)"
cp "trials/$kept/candidate/engine.c" champion/small/emu/engine.c
cp specs/small/spec.json "$work/spec.json"
sed -i 's/"margin"/"margin" /; s/a small model/another/' specs/small/spec.json
ok "nor for another problem than it was judged for" same 3 "$(freeze; echo $?)"
cp "$work/spec.json" specs/small/spec.json
cp -r specs/small specs/new
sed -i 's/"small"/"new"/' specs/new/spec.json
ok "without a champion there is nothing to freeze" has "has no champion on emu" "$bin/freeze" --SPEC=new --OUT="$work/none"
cp -r "$root/specs/vector_add" specs/
ok "a kernel's champion is shipped, not frozen" has "make ship" "$bin/freeze" --SPEC=vector_add --OUT="$work/none"
# Engines of one's own, one trial each: make try, adopt and redo.
newest() { trials=$(ls -d trials/[0-9]*); echo "${trials##*trials/}"; }
own() { "$bin/iterate" "$@" >"$work/own" 2>&1; }
ok "adopt takes a champion's folder" own --adopt --SPEC=small --FROM=champion/small/emu
ok "... its engine as it is" diff -r "trials/$kept/candidate" "trials/$(newest)/a0/candidate"
ok "... which was judged already" same "reject guard.duplicate" "$(code "$(newest)")"
ok "... and says where it is from" same "adopt: champion/small/emu" "$(jq -r .data.item "trials/$(newest)/a0/propose.json")"
ok "try takes a folder" own --try --SPEC=small --KERNEL=engines/0001
ok "... and judges it like any other" same "reject compile.error" "$(code "$(newest)" | sed 's/guard.duplicate/compile.error/')"
{ echo '#include <sys/socket.h>'; echo '/* another */'; } >own.c
ok "try takes one file" own --try --SPEC=small --KERNEL=own.c
ok "... as engine.c" cmp own.c "trials/$(newest)/a0/candidate/engine.c"
ok "... refused like any other" same "reject guard.include" "$(code "$(newest)")"
ok "an engine has no plan" same 2 "$(own --try --SPEC=small --KERNEL=own.c --PLAN=own.c; echo $?)"
ok "a folder without an engine" same 2 "$(own --try --SPEC=small --KERNEL=champion; echo $?)"
ok "redo takes a trial's files" own --redo --TRIAL=0001
ok "... and they are no duplicate then" same "reject compile.error" "$(code "$(newest)")"
ok "adopt takes a record, and its problem" own --adopt --FROM=trials/0003
ok "... files beside engine.c, too" diff -r trials/0003/candidate "trials/$(newest)/a0/candidate"
ok "redo runs the champion again" own --redo --TRIAL="$kept"
ok "... which does not beat itself" same "reject bench.below_margin" "$(code "$(newest)")"
ok "an engine is nothing for a kernel problem" same 2 "$(own --adopt --SPEC=vector_add --FROM=engines/0003; echo $?)"
ok "nor a kernel for an engine problem" same 2 "$(own --adopt --SPEC=small --FROM=specs/vector_add/baseline; echo $?)"
echo x >>engines/0003/kernels/Makefile
ok "nor what is no engine's" has "is no file of an engine" "$bin/iterate" --adopt --SPEC=small --FROM=engines/0003
ok "the page is written" "$bin/render"
ok "and shows the engine" grep -q 'engine\.c' reports/index.html
finish
