#!/bin/sh
# t31-engine-propose.sh - a command at an engine problem in CUDA, on the fake GPU: what its prompt says, a compile error of nvcc that
# goes back, and the mended engine through tests, judge and bench. It loses, and by much: one session.
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
mkdir -p specs/small/baseline/kernels
{ echo "#define PACE_US 1000"; cat "$root/tests/cuda/plain.cu"; } >specs/small/baseline/engine.cu
cat >specs/small/baseline/kernels/wait.cuh <<'END'
static int64_t now_ns() { timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1000000000LL + t.tv_nsec; }
static void wait_until(int64_t ns)
{
	timespec t = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL))
		;
}
END
cat >specs/small/spec.json <<'END'
{"schema": "touchstone/spec/1", "kind": "engine", "name": "small", "description": "a small model", "language": "cuda",
 "model": {"family": "qwen3", "shape": "tiny", "seed": 1},
 "workloads": {"public": [{"name": "two", "batch": 4, "prompt": 4, "steps": 16}],
               "proxy": [{"name": "secretly", "batch": 1, "prompt": 61, "steps": 3}],
               "tiny": [{"name": "least", "batch": 1, "prompt": 1, "steps": 17}, {"name": "more", "batch": 3, "prompt": 37, "steps": 16}]},
 "limits": {"load_s": 60, "step_s": 2}}
END
# First an engine that does not compile, with a file more; told why, the engine that it was shown, at half the pace.
cat >agent <<'END'
#!/bin/sh
cat >/tmp/prompt
engine() { awk '/^END engine.cu/ {on = 0} on {print} /^BEGIN engine.cu/ {on = 1}' /tmp/prompt; }
printf '{"item": "eng-loop: another pace", "hypothesis": "h"}\n```cuda engine.cu\n'
if grep -q '^BEGIN error' /tmp/prompt; then
	engine | sed '/nosuch/d; s/PACE_US 1000/PACE_US 2000/'
else
	echo 'static int oops = nosuch;'; engine
	printf '```\n```cuda kernels/more.cuh\nstatic const int more = 1;\n'
fi
printf '```\n'
END
chmod 755 agent "$work" "$work/tree"
PROPOSER_COMMAND=$work/tree/agent "$bin/iterate" --SPEC=small --PROPOSER=command --N=1 >"$work/first" 2>&1 || cat "$work/first"
codes() { jq -r .reason.code "$@" | paste -sd' '; }
ok "nvcc's error goes back, and what comes then passes its tests and is right" same "ok compile.error ok ok ok ok" \
	"$(codes trials/0001/a0/propose.json trials/0001/a0/guard.json trials/0001/a1/propose.json trials/0001/a1/guard.json trials/0001/a1/unittest.json trials/0001/judge.json)"
ok "and is timed on the GPU's lane" jq -e '.data.engine.workloads[0].candidate.total_s > 0' trials/0001/bench.json
ok "the file that the repair left out is the attempt's" test -f trials/0001/a1/candidate/kernels/more.cuh
ok "and the one that nobody touched the baseline's" cmp trials/0001/a1/candidate/kernels/wait.cuh specs/small/baseline/kernels/wait.cuh
P=trials/0001/a0/prompt.md
ok "the prompt has the baseline's files" sh -c "grep -q '^BEGIN engine.cu ' $P && grep -q '^BEGIN kernels/wait.cuh ' $P"
ok "the GPU and what it was measured to do" sh -c "grep -q '^Device: .* SMs; .* CUDA toolkit' $P && grep -q '^Measured on it: copy' $P"
ok "the rules and options of CUDA" sh -c "grep -q 'are compiled by nvcc' $P && grep -q -e '-std=c++17 -arch=ARCH' $P && ! grep -q ffp-contract $P"
ok "the playbook of engines on a GPU" grep -q 'eng-launches' $P
ok "an item of it is known by its id" same eng-loop "$(jq -r .data.playbook_item trials/0001/a0/propose.json)"
ok "no processor, no proxy" not grep -q -e 'runs on this processor' -e secretly -e '"proxy"' $P
ok "the repair is told nvcc's words, without folders" sh -c "sed -n '/^BEGIN error /,/^END error /p' trials/0001/a1/prompt.md | grep -q 'engine.cu.*nosuch' && ! grep -q -e /tmp -e /dev/shm trials/0001/a1/prompt.md"
finish
