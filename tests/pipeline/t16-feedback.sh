#!/bin/sh
# What a proposer is told of a failure at a secret shape: which rule at most, never where, what value, which
# shape or which key. Kernels that are right at all public and tiny shapes and fail each in its own way.
# SPDX-License-Identifier: MIT
. "$(dirname "$0")/../lib.sh"
real_tree
. "$root/tests/pipeline/inputs.sh"
"$bin/selftest" --DEVICE=emu >/dev/null || skip_all "nothing is emulated here"

# vector_add, small: what is secret are five digits or fewer, none of them a public size.
rm specs
mkdir specs
cp -r "$root/specs/vector_add" specs/
jq '.workloads.public = [.workloads.public[0] | .emu = {"N": 4099}] | del(.start) | .limits = {"run_s": 1} |
	.workloads.held_out.emu.N = {"min": 10001, "max": 30011, "multiple_of": 7}' \
	"$root/specs/vector_add/spec.json" >specs/vector_add/spec.json

mkdir "$work/replies"
n=0
# way NAME BODY: where n > 5000 (no public and no tiny shape) BODY comes instead of the sum
way() {
	n=$((n + 1))
	cat >"$work/replies/$n" <<END
{"item": "way $1", "hypothesis": "none", "expected_effect": "none", "files": ["kernel.cu", "plan.json"], "risk": "none", "reasoning": "none"}

\`\`\`cuda kernel.cu
extern "C" __global__ void k(const float *x, const float *y, float *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (n > 5000) {
		$2
		return;
	}
	if (i < n)
		out[i] = x[i] + y[i];
}
\`\`\`

\`\`\`json plan.json
{"schema": "touchstone/plan/1", "entries": ["k"], "launches": [{"entry": "k", "grid": ["ceil_div(N + 1, 128)"],
 "block": [128], "args": [{"in": "x"}, {"in": "y"}, {"out": "out"}, {"axis": "N", "type": "i32"}]}]}
\`\`\`
END
}
sum='if (i < n) out[i] = x[i] + y[i];'
way element 'if (i < n) out[i] = i == 4321 ? x[i] : x[i] + y[i];'
way nan 'if (i < n) out[i] = i == 77 ? __int_as_float(0x7fc00000) : x[i] + y[i];'
way infinity 'if (i < n) out[i] = i == 5 ? 1.0f / (x[i] - x[i]) : x[i] + y[i];'
way unwritten 'if (i < n - 1) out[i] = x[i] + y[i];'
way precision 'if (i < n) out[i] = __uint_as_float(__float_as_uint(x[i] + y[i]) & 0xfffff000u);'
way guard "$sum if (i == n) out[i] = 3.0f;"
way peek 'if (i < n) out[i] = (x[i] + y[i]) * (1.0f + (float)(__float_as_uint(x[n]) & 255u) * 1.2e-9f);'
way fault "$sum if (i == n) ((volatile int *)64)[i] = i;"
way hang "while (((volatile const float *)x)[0] < 1e30f) ;"
# And at the public shape.
way public "$sum"
sed 's/n > 5000/n > 4000/; s/out\[i\] = x\[i\] + y\[i\];$/out[i] = i == 1234 ? 0.5f : x[i] + y[i];/' "$work/replies/$n" >"$work/r"
mv "$work/r" "$work/replies/$n"

# The proposer is given the next of them; the last asks without an answer.
cat >"$work/replies/next" <<'END'
#!/bin/sh
seen=$(grep -c '^trial 0' || true)
cat "$(dirname "$0")/$((seen + 1))" 2>/dev/null || echo "nothing left"
END
chmod +x "$work/replies/next"
PROPOSER_PATHS=$work/replies "$bin/iterate" --SPEC=vector_add --DEVICE=emu --PROPOSER=command \
	--COMMAND="$work/replies/next" --N=$((n + 1)) >"$work/log" 2>&1
last=$(printf %04d $((n + 1)))
prompt=trials/$last/a0/prompt.md
ok "all were tried, and the next prompt made" test -s $prompt
[ -s $prompt ] || { tail -n 20 "$work/log"; finish; exit 1; }
[ "${SHOW:-}" ] && cat $prompt
for i in $(seq 1 $((n - 1))); do
	id=$(printf %04d "$i")
	ok "$(jq -r .item trials/$id/a0/proposal.json) is refused at a secret shape" same \
		"$(jq -r .reason.code trials/$id/promote.json)" judge.held_out
done
ok "the public one for its own reason" has "judge." jq -r .reason.code "trials/$(printf %04d $n)/promote.json"

# What stands there of each: trial, code, item, the proposer's own words, and the message.
grep '^  result: ' $prompt | sort -u >"$work/told"
ok "of a secret shape it says that alone" same "$(grep -c 'held-out' "$work/told")" 1
ok "without a digit: no index, no value, no shape" same "$(grep 'held-out' "$work/told" | grep '[0-9]')" ""
ok "nor of the public one, but for its name" same "$(grep -v 'held-out' "$work/told" | grep '[0-9]')" ""

# Nothing secret in any prompt, by what the run drew.
for i in $(seq 1 $n); do
	id=$(printf %04d "$i")
	inputs trials/runs/r0001 "$id" judge | sed -n 's/^shape //p'
	jq -r '.data.stage_key // empty' trials/"$id"/*.json trials/"$id"/a0/*.json 2>/dev/null
done | sort -u >"$work/secrets"
od -An -v -tx1 trials/runs/r0001/key | tr -d ' \n' >>"$work/secrets"
ok "there are secrets to look for" test "$(wc -l <"$work/secrets")" -gt 30
ok "no secret shape or key in any prompt" same "$(grep -o -w -h -F -f "$work/secrets" trials/*/a0/prompt.md | sort -u)" ""
ok "nor a word of the held-out ranges" same "$(grep -h -E '10001|30011|"held_out"' trials/*/a0/prompt.md)" ""
ok "nor in what the wrapper prints" same "$(grep -o -w -F -f "$work/secrets" "$work/log" | sort -u)" ""
ok "what a verdict says in words has no shape either" same "$(jq -r .reason.message trials/*/judge.json | grep -o -w -F -f "$work/secrets")" ""
finish
