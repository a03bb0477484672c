#!/bin/sh
# t03-mixed.sh - a run of twelve candidates on the fake GPU: good, slow, wrong and deadly ones in turn.
#
# A model's replies are scripted (tests/server). Every trial must close with its own reason, nobody may suffer
# for another's fault, and nobody has to help.
#
# SPDX-License-Identifier: MIT
. "$(dirname "$0")/lib.sh"
need_plain
need_nvrtc
fake_gpu
(cd "$root" && BUILD=$build sh -c '. tests/propose/lib.sh; build_server') || skip_all "no test server"
fake_spec

# reply ENTRY US: what a model would answer, as a line of JSON
reply() {
	fixed "$work/c" "$1" "$2"
	jq -n --rawfile kernel "$work/c/kernel.cu" --rawfile plan "$work/c/plan.json" \
		'{text: ("```cuda kernel.cu\n" + $kernel + "```\n\n```json plan.json\n" + $plan + "```\n")}'
}
want() { echo "$1 $2 $3 $4" >>"$work/want"; reply "$1" "$2"; }

# entry, US, verdict or kept, reason. One is faster than the baseline (300 us), all right ones after it are slower.
{
	want add_wrong 50 reject judge.element
	want add_good 100 true promote.first
	want add_hang 50 reject judge.timeout
	want add_illegal 50 reject judge.fault
	want add_good 200 reject bench.slower
	want add_write_input 50 reject judge.fault
	want add_guard 50 reject judge.guard_write
	want add_counter 200 reject guard.module_state
	want add_trap 50 reject judge.fault
	want add_lazy 250 reject guard.module_state
	want add_nothing 50 reject guard.entry_missing
	want add_shared 200 reject bench.slower
} >"$work/replies"
jq -s '{replies: .}' "$work/replies" >"$work/script.json"
"$build/test/server" --script "$work/script.json" --log "$work/calls" --save "$work" --port-file "$work/port" \
	>/dev/null 2>"$work/server.err" &
server=$!
for i in 1 2 3 4 5 6 7 8 9 10; do [ -s "$work/port" ] && break; sleep 0.1; done

OPENAI_BASE_URL=http://127.0.0.1:$(cat "$work/port")/v1 OPENAI_API_KEY=x OPENAI_MODEL=scripted
export OPENAI_BASE_URL OPENAI_API_KEY OPENAI_MODEL
ok "the run ends by itself" "$bin/iterate" --SPEC=fake_add --DEVICE=cuda --PROPOSER=openai --REPAIRS=0 --N=12 --WIDTH=1 \
	--UNITTEST_DEVICE=none
kill $server
[ "${SHOW:-}" ] && cat "$work/.out"
ok "all trials closed" same "$(ls trials/*/promote.json | wc -l)" 12
n=0
while read -r entry us verdict code; do
	n=$((n + 1))
	p=trials/$(printf %04d $n)/promote.json
	ok "trial $n, $entry at $us us: $verdict, $code" \
		same "$(jq -r '"\(if .data.kept then true else .verdict end) \(.reason.code)"' "$p")" "$verdict $code"
done <"$work/want"
ok "no GPU figure is claimed for it" has "Fake GPU (tests)" cat trials/runs/r0001/device.json
finish
