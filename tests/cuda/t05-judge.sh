#!/bin/sh
# t05-judge.sh - unittest, tune, judge and check of a GPU's candidate on the fake driver: which build the unit
# tests take, which configuration tune keeps, what judge says and of which GPU; then the same trial again.
#
# SPDX-License-Identifier: MIT
. "$(dirname "$0")/lib.sh"
fake_gpu
need_nvrtc
need_plain
fake_spec

# reply ENTRY [STATEMENT]: a candidate that the driver runs by its name.
reply() {
	candidate "$work/c" "$1"
	[ -z "${2:-}" ] || sed -i "0,/^{/s//{ $2/" "$work/c/kernel.cu"
	{
		echo '{"hypothesis": "a test", "files": ["kernel.cu", "plan.json"]}'
		printf '\n### kernel.cu\n```cuda\n'
		cat "$work/c/kernel.cu"
		printf '```\n\n### plan.json\n```json\n'
		cat "$work/c/plan.json"
		printf '```\n'
	} >"$work/reply.txt"
}
# Later steps are other tests' business: none is started, but in the first trial, which makes a champion.
go() {
	MAKE="$step_by_step" ZOO_STOP=${last#a0/} "$bin/iterate" --SPEC=$SPEC --DEVICE=cuda --PROPOSER=replay --REPLY="$work/reply.txt" --N=1 --NEW=1 "$@" \
		>"$work/log" 2>&1 || tail -n 5 "$work/log"
	[ -f "trials/$id/$last.json" ]
}
of() { jq -r "$2" "trials/$id/$1.json"; }

asm='asm volatile("");'
step_by_step=${MAKE:-make}
id=0001 last=judge SPEC=fake_add
reply add_good
ok "a right candidate gets as far as the judge" go
ok "its emulated builds were tested" same emulated "$(of a0/unittest .data.coverage)"
ok "tune keeps the fastest configuration" same 100 "$(of tune '.data.configurations[] | select(.chosen) | .values.US')"
ok "its images are the trial's" same "$(sha256sum trials/$id/artefact/cuda-0 | cut -d" " -f1)" \
	"$(jq -r ".outputs[\"artefact/cuda-0\"]" trials/$id/tune.json)"
ok "with their PTX" grep -q '\.entry add_good' trials/$id/artefact/cuda-0.ptx
ok "it is right" same pass "$(of judge .verdict)"
ok "the verdict names the GPU" same "Fake GPU (tests)" "$(of judge .data.gpu.name)"
ok "the lane was held alone" same exclusive "$(of judge .data.lane.mode)"
ok "thread orders were not tried, and it says so" same null "$(of judge .data.order_dependent)"
ok "isolation was enough" same 3 \
	"$(of judge '[.isolation[] | select(test("^(no_new_privs|rlimits|seccomp)"))] | length')"
kept=champion/fake_add/fake-gpu-tests/evidence
ok "the champion keeps its machine code" cmp trials/$id/artefact/cuda-0 $kept/cuda-0.cubin
ok "and its PTX" cmp trials/$id/artefact/cuda-0.ptx $kept/cuda-0.ptx
ok "it is judged again with the same result" has agrees "$bin/replay" --TRIAL=0001
settings=$(cat "$work/gpu/fake.conf")
echo FAKE_CUDA_GPUS=0 >"$work/gpu/fake.conf"
ok "not without that GPU" code 4 "$bin/replay" --TRIAL=0001
ok "in words" has "was judged on a Fake GPU" "$bin/replay" --TRIAL=0001
echo "$settings" >"$work/gpu/fake.conf" # without them whole granules of 2 MiB are looked at in each rep

step_by_step=$root/tests/zoo/steps
id=0002 last=a0/unittest
reply add_good "$asm"
ok "inline assembly" go
ok "no emulated build: tested on the GPU" same "ok none" "$(of a0/unittest '"\(.reason.code) \(.data.coverage)"')"
ok "at the tiny shapes" has "2 tiny shapes on the GPU" of a0/unittest .reason.message

id=0003
reply add_wrong "$asm"
ok "one wrong element" go
ok "the GPU's unit test sees it" same unittest.wrong "$(of a0/unittest .reason.code)"

id=0004 last=judge
reply add_hang "$asm"
ok "a kernel that hangs, no unit tests" go --UNITTEST_DEVICE=none
ok "unit tests were left out" same none "$(of a0/unittest .data.coverage)"
ok "tune sees the hang" same tune.none_correct "$(of tune .reason.code)"

# Two sizes that want different configurations: the plan then chooses, and every step picks the image.
cp -r specs/fake_add specs/fake_two
jq '.name = "fake_two" | .workloads.public += [{name: "small", axes: {N: 1000}, weight: 1, emu: {N: 1000}}]' \
	"$root/tests/fake/cuda/fake_add/spec.json" >specs/fake_two/spec.json
id=0005 SPEC=fake_two
reply add_good "$asm"
sed -i 's/"expr": "US"/"expr": "select(N > 1500, US, 500 - US)"/' "$work/reply.txt"
ok "two sizes, two configurations" go
ok "tune says so" same true "$(of tune .data.by_size)"
ok "the plan chooses by a size" same "2 N" \
	"$(jq -r '.tunables.US | "\([.value, .choose[].value] | unique | length) \(.choose[0].when[:1])"' trials/$id/candidate/plan.json)"
ok "two images, both read by the judge" same "cuda-0 cuda-1 2" \
	"$(cd trials/$id/artefact && echo cuda-[0-9]) $(of judge '[.inputs | keys[] | select(startswith("artefact"))] | length')"
ok "it is right" same pass "$(of judge .verdict)"

"$bin/check" --SPEC=fake_add --DEVICE=cuda >"$work/check" 2>&1
ok "the problem is proved on the GPU" same "the spec holds" "$(tail -n 1 "$work/check")"
ok "its fakes were refused" same "12 0" "$(grep -c refused, "$work/check") $(grep -c ACCEPTED "$work/check")"
ok "both inputs matter" same 2 "$(grep -c 'moves the output' "$work/check")"
ok "the timer was looked at" grep -q 'tick 32 ns' "$work/check"
finish
