#!/bin/sh
# t02-gpu.sh - guard for a GPU: what NVRTC makes of a candidate, and whether it fits its plan.
#
# The GPU is the fake one: guard only needs to know what it is. The compiler is the real one.
# SPDX-License-Identifier: MIT
. "$(dirname "$0")/../cuda/lib.sh"
fake_gpu
need_nvrtc
real_tree

base=$root/specs/vector_add/baseline
id=0
try() {
	make try NEW=1 SPEC=vector_add DEVICE=cuda KERNEL=k.cu PLAN=p.json >out.log 2>&1 || true
	id=$(cat trials/*/trial.json 2>/dev/null | jq -r .trial | sort -n | tail -n 1)
	v=trials/$id/a0/guard.json
}
says() { jq -e "$1" "$v" || { tail -n 5 out.log; jq -c '[.verdict, .reason]' "$v"; return 1; }; }
# refused CODE TEXT
refused() { says ".verdict == \"reject\" and .reason.code == \"$1\" and (.reason.message | contains(\"$2\"))"; }

cp "$base/kernel.cu" k.cu
cp "$base/plan.json" p.json
try
ok "the baseline passes" says '.verdict == "pass" and .data.coverage == "full"'
ok "a module with its PTX, both hashed" says '.outputs | keys | map(select(test("artefact/cuda-0"))) | length == 2'
ok "registers of each entry are on record" says '.data.images[0].facts.entries[0].registers > 3'
ok "the compiler is named" says '.data.images[0].compiler | test("NVRTC 1[23]")'
ok "the module lies where later steps look" test -s "trials/$id/a0/artefact/cuda-0"
ok "so do the images of the emulated device" test -s "trials/$id/a0/artefact/emu-fast"

jq '.launches[0].args[-1].type = "i64"' "$base/plan.json" >p.json
try
ok "an argument of another size" refused guard.entry_signature "parameter 3"
jq '.launches[0].args |= .[1:]' "$base/plan.json" >p.json
try
ok "an argument too few" refused guard.entry_signature "takes 4 parameters"

cp "$base/plan.json" p.json
{ cat "$base/kernel.cu"; echo '__global__ void more(float *z) { z[0] = 1; }'; } >k.cu
try
ok "a kernel that the plan does not name" refused guard.entry_extra more

entry=$(jq -r '.entries[0]' p.json)
awk -v e="$entry" '{ print } index($0, e "(") { seen = 1 }
	seen && /{/ { print "unsigned long long t; asm volatile(\"mov.u64 %0, %%globaltimer;\" : \"=l\"(t)); if (t == 1) return;"; seen = 0 }' \
	"$base/kernel.cu" >k.cu
try
ok "a clock" refused guard.opcode globaltimer

awk -v e="$entry" '{ print } index($0, e "(") { seen = 1 }
	seen && /{/ { print "asm volatile(\"membar.gl;\");"; seen = 0 }' "$base/kernel.cu" >k.cu
try
ok "honest assembly passes" says '.verdict == "pass"'
ok "and the tests know that it cannot be emulated" says '.data.coverage == "none"'
finish
