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
# Later steps are other tests' business.
go() {
	"$bin/iterate" --SPEC=fake_add --DEVICE=cuda --PROPOSER=replay --REPLY="$work/reply.txt" --N=1 --NEW=1 "$@" \
		>"$work/log" 2>&1 || tail -n 5 "$work/log"
	[ -f "trials/$id/$last.json" ]
}
of() { jq -r "$2" "trials/$id/$1.json"; }

asm='asm volatile("");'
id=0001 last=judge
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
ok "it is judged again with the same result" has agrees "$bin/replay" --TRIAL=0001

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

"$bin/check" --SPEC=fake_add --DEVICE=cuda >"$work/check" 2>&1
ok "the problem is proved on the GPU" same "the spec holds" "$(tail -n 1 "$work/check")"
ok "its fakes were refused" same "12 0" "$(grep -c refused, "$work/check") $(grep -c ACCEPTED "$work/check")"
ok "both inputs matter" same 2 "$(grep -c 'moves the output' "$work/check")"
ok "the timer was looked at" grep -q 'tick 32 ns' "$work/check"
finish
