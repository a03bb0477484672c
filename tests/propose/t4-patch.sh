#!/bin/sh
# t4-patch.sh - candidate.patch shows what changed and no reformatting, whoever proposed.
# SPDX-License-Identifier: MIT
cd "$(dirname "$0")/../.." || exit 1
. tests/propose/lib.sh
SPEC=$ROOT/specs/matmul
A=$W/trials/0001/a0
given() { # FILE NAME
	mkdir -p "$W/trials/runs/r0001/given"; cp "$1" "$W/trials/runs/r0001/given/$2"
	jq --arg n "$2" --arg s "$(sha "$1")" '.given[$n]=$s' "$W/trials/runs/r0001/run.json" >"$T/run" && cp "$T/run" "$W/trials/runs/r0001/run.json"
}
mine() { # KERNEL PLAN: propose my own files
	new_run "$SPEC" manual 1 1 . '.origin={kind:"try",from:"k.cu"}'
	given "$1" kernel.cu; given "$2" plan.json; propose 0001
}
lines() { grep '^[-+]' "$A/candidate.patch" | grep -v '^---\|^+++'; }

new_run "$SPEC" sweep 1 1; propose 0001
same "sweep" "0 pass ok" "$CODE $(verdict 0001)"
check "nothing but values changed" sh -c "test -s '$A/candidate.patch' && ! grep '^[-+]' '$A/candidate.patch' | grep -v '^---\|^+++' | grep -v '\"value\": '"
check "the kernel is not in it" sh -c "! grep -q kernel.cu '$A/candidate.patch'"
check "no folder is left behind" test ! -e "$A/compare"

jq -c '.tunables.TX.value=32' "$SPEC/baseline/plan.json" >"$T/p.json"
mine "$SPEC/baseline/kernel.cu" "$T/p.json"
same "my plan on one line, one value changed" "0 pass ok" "$CODE $(verdict 0001)"
same "the patch has that value" '-      "value": 16,+      "value": 32' "$(lines | sed 's/,$//' | paste -sd, )"
same "the candidate's plan is as it was given" "$(sha "$T/p.json")" "$(sha "$A/candidate/plan.json")"
check "between parent and candidate" grep -q '^+++ b/candidate/plan.json' "$A/candidate.patch"

jq -c . "$SPEC/baseline/plan.json" >"$T/p.json"; { cat "$SPEC/baseline/kernel.cu"; echo "// mine"; } >"$T/k.cu"
mine "$T/k.cu" "$T/p.json"
same "a reformatted plan is no change" "+// mine" "$(lines)"

echo '{"schema": 1}' >"$T/p.json"
mine "$SPEC/baseline/kernel.cu" "$T/p.json"
same "a plan that cannot be read" "0 pass ok" "$CODE $(verdict 0001)"
check "is shown as it is" grep -q '^+{"schema": 1}' "$A/candidate.patch"
done_testing
