#!/bin/sh
# t06-iterate.sh - an engine problem through the whole loop: proposed, compiled, judged, timed, kept, in the record.
#
# Engines of known speed (paced.c), so that a busy machine hardly shows; a faster one may need another go to be kept.
#
# SPDX-License-Identifier: MIT
. "$(dirname "$0")/../lib.sh"
real_tree
rm specs
mkdir -p specs/small/baseline engines/0001 engines/0002 engines/0003/kernels engines/0005
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
it() { "$bin/iterate" --SPEC=small --PROPOSER=replay --REPLY="$work/tree/engines" "$@"; }

ok "an engine is not judged elsewhere" code 2 it --N=1 --RUN_GPU=loopback
ok "nor by a proposer that knows kernels alone" code 2 "$bin/iterate" --SPEC=small --PROPOSER=command --COMMAND=cat --N=1
ok "nor on another device" code 2 it --N=1 --DEVICE=sim
ok "MODEL_DIR is refused for a problem without a model" code 2 sh -c "mv specs kept; ln -s $root/specs specs
	$bin/iterate --SPEC=vector_add --N=1 --DEVICE=sim --MODEL_DIR=/tmp; c=\$?; rm specs; mv kept specs; exit \$c"
code() { jq -r '.verdict + " " + .reason.code' "trials/$1/promote.json"; }
"$bin/make-checkpoint" tiny "$work/model" --seed 3 >/dev/null
it --N=5 --MODEL_DIR="$work/model" >"$work/first" 2>&1 || cat "$work/first"
ok "the run is held to the checkpoint it was given" same "$(jq -r .settings.model_sha256 trials/runs/r0001/run.json)" \
	"$(jq -r .inputs.model trials/0003/judge.json)"
ok "the compiler's words name no folder of this machine" not grep -q "/src/\|/tmp" trials/0001/a0/guard.log
ok "... and say where" grep -q "^engine.c:1:" trials/0001/a0/guard.log
ok "one that does not compile" same "reject compile.error" "$(code 0001)"
ok "one that asks for sockets" same "reject guard.include" "$(code 0002)"
ok "one with a file too many" same "reject propose.file_name" "$(code 0005)"
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
ok "the page is written" "$bin/render"
ok "and shows the engine" grep -q 'engine\.c' reports/index.html
finish
