#!/bin/sh
# t08-check.sh - make check of an engine problem: a sound one holds, a wrong baseline and a checkpoint that cannot judge do not.
#
# SPDX-License-Identifier: MIT
. "$(dirname "$0")/../lib.sh"
real_tree
rm specs
mkdir -p specs/small
spec() { # SHAPES...: the public workloads
	cat >specs/small/spec.json <<END
{"schema": "touchstone/spec/1", "kind": "engine", "name": "small", "description": "a small model", "language": "c",
 "model": {"family": "qwen3", "shape": "tiny", "seed": 1},
 "workloads": {"public": [$1],
               "tiny": [{"name": "odd", "batch": 5, "prompt": 7, "steps": 16}]},
 "limits": {"load_s": 20, "step_s": 2}}
END
}
spec '{"name": "one", "batch": 1, "prompt": 40, "steps": 34}, {"name": "two", "batch": 2, "prompt": 12, "steps": 20}'
cp -r "$root/specs/qwen3-tiny/baseline" specs/small/
check() { "$bin/check" --SPEC=small "$@"; }

ok "a sound problem" code 0 sh -c "'$bin/check' --SPEC=small >'$work/table' 2>&1"
sed 's/^/# /' "$work/table"
ok "says that it holds" grep -qx "the spec holds" "$work/table"
ok "its baseline is judged, tiny and public" same 2 "$(grep -c '^  ok    baseline passes its own judge at' "$work/table")"
for name in rope_pairs no_rope no_qk_norm q_late drop_newest window gqa_map skip_layer stale_kv vocab swapped_rows \
	other_prompt int4 fp8; do
	ok "$name is refused" grep -Eq "^  ok    $name +(margin|mean_regret|p99_regret|argmax_rate) " "$work/table"
done
ok "honest ways pass" same 2 "$(grep -Ec '^  ok    (float32|bfloat16) +ok ' "$work/table")"
ok "eight bits are counted" same 2 "$(grep -Ec '^  ok    int8.*about [0-9]+ ids tell it' "$work/table")"

sed -i 's/g = head \/ (m.heads \/ m.kv_heads)/g = head % m.kv_heads/' specs/small/baseline/engine.c
ok "a baseline that is not the model's" code 3 sh -c "'$bin/check' --SPEC=small >'$work/table' 2>&1"
ok "... is named" grep -q "^  FAIL  baseline at tiny workloads: margin: workload 'odd'" "$work/table"
ok "... and the problem does not hold" grep -qx "the spec does NOT hold" "$work/table"
echo 'int main(void) { return 0 }' >specs/small/baseline/engine.c
ok "a baseline that does not compile" code 3 check
cp "$root/specs/qwen3-tiny/baseline/engine.c" specs/small/baseline/
spec '{"name": "one", "batch": 1, "prompt": 4, "steps": 8}'
ok "too few ids to judge by" has "too few tokens to calibrate with" check
ok "... is a problem that does not hold" code 3 check
ok "an engine in C on no other device" code 2 check --DEVICE=cuda
ok "no checkpoint there" code 3 check --MODEL_DIR=/no/such/folder
rm -r specs
ln -s "$root/specs" specs
ok "a kernel problem has no checkpoint" code 2 "$bin/check" --SPEC=vector_add --MODEL_DIR=/tmp
finish
