#!/bin/sh
# t30-engine.sh - an engine in CUDA through the whole loop on the fake GPU: built by the real nvcc, confined with the driver's files,
# judged by the reference on that GPU, timed on its lane. Its arithmetic is the host's (plain.cu), its speed is set.
#
# SPDX-License-Identifier: MIT
. "$(dirname "$0")/lib.sh"
need_plain
need_nvrtc
[ -x /usr/local/cuda/bin/nvcc ] || command -v nvcc >/dev/null || skip_all "no nvcc on this machine: engines in CUDA are not built here"
[ -f "$fake/libcublas.so.13" ] || skip_all "no fake cuBLAS in $fake"
fake_gpu
cp "$fake/libcublas.so.13" "$work/gpu"
real_tree
rm specs
mkdir -p specs/small/baseline/kernels engines
engine() { # DIR US [LINE]
	mkdir -p "$1/kernels"
	{ echo "#define PACE_US $2"; echo "${3:-}"; cat "$root/tests/cuda/plain.cu"; } >"$1/engine.cu"
	cat >"$1/kernels/wait.cuh" <<'END'
static int64_t now_ns() { timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1000000000LL + t.tv_nsec; }
static void wait_until(int64_t ns)
{
	timespec t = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL))
		;
}
END
}
cat >specs/small/spec.json <<'END'
{"schema": "touchstone/spec/1", "kind": "engine", "name": "small", "description": "a small model", "language": "cuda",
 "model": {"family": "qwen3", "shape": "tiny", "seed": 1},
 "workloads": {"public": [{"name": "two", "batch": 2, "prompt": 4, "steps": 16}, {"name": "three", "batch": 3, "prompt": 5, "steps": 16}],
               "tiny": [{"name": "least", "batch": 1, "prompt": 1, "steps": 17}, {"name": "odd", "batch": 3, "prompt": 37, "steps": 16}]},
 "limits": {"load_s": 60, "step_s": 2}}
END
engine specs/small/baseline 6000
engine engines/0001 6000 'int main(void) { return 0; }'
engine engines/0002 6000 '#include <sys/socket.h>'
engine engines/0003 6000 '#define FLIP 1'
engine engines/0004 3500 '#include <mma.h>
#include <cuda_bf16.h>
#include <cuda/std/array>
__global__ void ptx(unsigned *x) { asm volatile("mov.u32 %0, %%laneid;" : "=r"(*x)); }'
echo 'nearly twice as fast' >engines/0004.txt
it() { "$bin/iterate" --SPEC=small --PROPOSER=replay --REPLY=engines "$@"; }
ok "an engine in CUDA runs on a GPU alone" code 2 it --N=1 --DEVICE=emu
it --N=4 >"$work/first" 2>&1 || cat "$work/first"
code() { jq -r '.verdict + " " + .reason.code' "trials/$1/promote.json"; }
ok "one that does not compile" same "reject compile.error" "$(code 0001)"
ok "... whose words name no folder of this machine" not grep -q "/src/\|/tmp" trials/0001/a0/guard.log
ok "one that asks for sockets" same "reject guard.include" "$(code 0002)"
ok "one that says a wrong id" same "reject unittest.margin" "$(code 0003)"
ok "the fast one passes unittest" same pass "$(jq -r .verdict trials/0004/a0/unittest.json)"
ok "... and judge" same pass "$(jq -r .verdict trials/0004/judge.json)"
judge=trials/0004/judge.json bench=trials/0004/bench.json
ok "... on the GPU's model, by its name" same fake-gpu-tests "$(jq -r .device.kind $judge)"
ok "... not emulated, on a card that is named" jq -e '.emulated == false and (.device.uuid | startswith("GPU-")) and .device.driver != null' $judge
ok "... confined" jq -e '.isolation | index("no_new_privs") and index("seccomp") and (index("mountns") or index("netns"))' $judge
ok "... with the lane held alone" same exclusive "$(jq -r .data.lane.mode $judge)"
ok "timed: others on the card were looked for" jq -e '.data.states | length > 0' $bench
ok "... memory of the card is on record" jq -e '.data.engine.workloads[0].candidate.gpu_bytes >= 0' $bench
ok "... and how near it came to the card's measured ceilings" jq -e '.data.engine.ceilings == "measured" and
	(.data.engine.workloads[0].candidate | .of_floor > 0 and .of_floor < 1)' $bench
ok "replay judges it again" has "judge       same: pass ok" "$bin/replay" --TRIAL=0004
ok "... and agrees" has agrees "$bin/replay" --TRIAL=0004
ok "it is kept, or the machine was too busy to say" jq -e '.verdict == "pass" or (.reason.code | test("spread|invalid_env|inconclusive"))' trials/0004/promote.json
ok "a stranger agrees with its timing" "$bin/recheck" $bench
[ "$(jq -r .verdict trials/0004/promote.json)" != pass ] || {
	ok "a champion of that GPU" cmp trials/0004/candidate/engine.cu champion/small/fake-gpu-tests/engine.cu
	ok "it is frozen there" "$bin/freeze" --SPEC=small --OUT="$work/frozen"
	ok "... with what it was timed on" jq -e '.environment.gpu != null and (.environment.toolkit | test("^1[0-9]")) and .environment.arch == "'"$(jq -r .device.arch $judge)"'" and
		(.files | has("engine.cu")) and .times.score_tokens_s.champion > 0' "$work/frozen/FREEZE.json"
	ok "status names its file" has engine.cu "$bin/status" --champion
	BUILD=$build
	export BUILD
	ok "it ships, files and evidence" "$root/tools/ship" --DEVICE=fake-gpu-tests
	ok "... with all of its files" cmp trials/0004/candidate/kernels/wait.cuh champion/shipped/fake-gpu-tests/small/kernels/wait.cuh
	ok "... and its times" grep -q "^| two | 2 / 4 / 16 |" champion/shipped/fake-gpu-tests/small/README.md
	echo >>champion/shipped/fake-gpu-tests/small/engine.cu
	ok "one that was changed is told" has "engine.cu is not that of trial 0004" "$root/tools/ship" --check
}
# The rest of the table is tests/engine/t08-check.sh's; here it takes too long.
"$bin/check" --SPEC=small >"$work/table" 2>&1 &
check=$!
while kill -0 $check && ! grep -q rope_pairs "$work/table"; do sleep 0.2; done 2>"$work/ended"
kill $check 2>"$work/ended"
wait $check
ok "check: wrong models are made on the GPU, too, and refused" grep 'ok *rope_pairs *margin' "$work/table"
ok "the page is written" "$bin/render"
ok "and shows the engine" grep -q 'engine\.cu' reports/index.html
finish
