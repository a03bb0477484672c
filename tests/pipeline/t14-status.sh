#!/bin/sh
# How far a verdict carries: clean, rule-dependent with the rules named, inconclusive, invalid; in the record, the
# log, status and the page.
. "$(dirname "$0")/../lib.sh"
real_tree

base=$root/specs/vector_add/baseline
id=0
# try DEVICE SPEC: ./k.cu and ./p.json; the trial's id in $id
try() {
	make try NEW=1 SPEC="$2" DEVICE="$1" KERNEL=k.cu PLAN=p.json >out.log 2>&1 || true
	id=$(cat trials/*/trial.json | jq -r .trial | sort -n | tail -n 1)
}
is() { # is STEP STATUS RULES
	jq -e --arg s "$2" --argjson r "$3" '.status == $s and ([.data.relies[]?.rule] == $r)' "trials/$id/$1.json" ||
		{ jq -c '[.verdict, .status, .reason, .data.relies]' "trials/$id/$1.json"; tail -n 4 out.log; return 1; }
}

cp "$base/kernel.cu" k.cu
cp "$base/plan.json" p.json
try sim vector_add
ok "a plain kernel is clean" is promote clean '[]'
ok "... in every step" sh -c "jq -e -s 'length == 5 and all(.status == \"clean\")' trials/$id/a0/guard.json \
	trials/$id/judge.json trials/$id/bench.json trials/$id/confirm.json trials/$id/promote.json"
ok "... in the log" sh -c "tail -n 1 trials/log.jsonl | jq -e '.status == \"clean\" and (has(\"relies\") | not)'"
ok "... and on the page" not grep -q rule-dependent reports/index.html
ok "status says nothing of rules" not has rule-dependent make status

rm -rf trials champion reports
jq '.compile = {fast_math: true}' "$base/plan.json" >p.json
echo '__device__ int half_of(int n) { return n == 16777253 ? 1 : 2; }' >>k.cu
try sim vector_add
both='["fast_math", "public_sizes"]'
ok "guard tells the rules early" is a0/guard rule-dependent "$both"
ok "judge names them" is judge rule-dependent "$both"
ok "bench adds none" is bench clean '[]'
ok "what is kept carries them" is promote rule-dependent "$both"
ok "... in words that an author can answer" jq -e '.data.relies | length == 2 and all(.words | test("would be clean$"))' \
	"trials/$id/promote.json"
ok "the log has status and rules" sh -c "tail -n 1 trials/log.jsonl |
	jq -e '.status == \"rule-dependent\" and [.relies[].rule] == $both'"
ok "so has the end of the run" grep -q 'status    rule-dependent: fast_math, public_sizes' out.log
ok "make status says it" has 'rule-dependent: fast_math, public_sizes' make status
ok "make champion says why" has 'rule-dependent, fast_math: compiled with fast_math' make champion
ok "the page tags it" grep -q 'class=tag>rule-dependent' reports/index.html
ok "... and says why" grep -q 'asks whether something is 16777253' reports/index.html

cp "$base/kernel.cu" k.cu
printf '{}' >p.json
try sim vector_add
ok "a rejection depends on no rule" is promote clean '[]'

if [ "$(uname -m)" = x86_64 ] || [ "$(uname -m)" = aarch64 ]; then
	# Blocks add their sums in the order in which they come.
	rm specs
	mkdir specs
	cp -r "$root/tests/zoo/specs/row_sum" specs/
	cat >k.cu <<'E'
extern "C" __global__ void zero(float *y) { y[blockIdx.x] = 0; }
extern "C" __global__ void sum(const float *x, float *y, int cols)
{
	bool one = cols <= 256; // tiny: in order
	for (int c = one ? 0 : blockIdx.y * blockDim.x + threadIdx.x; c < cols && (!one || blockIdx.y + threadIdx.x == 0);
	     c += one ? 1 : gridDim.y * blockDim.x)
		atomicAdd(&y[blockIdx.x], x[(long long)blockIdx.x * cols + c]);
}
E
	cat >p.json <<'E'
{"schema": "touchstone/plan/1", "entries": ["zero", "sum"], "launches": [
 {"entry": "zero", "grid": ["R"], "block": [1], "args": [{"out": "y"}]},
 {"entry": "sum", "grid": ["R", 4], "block": [64], "args": [{"in": "x"}, {"out": "y"}, {"axis": "C", "type": "i32"}]}]}
E
	MAKE="$root/tests/zoo/steps" ZOO_STOP=judge "$bin/iterate" --try --NEW=1 --SPEC=row_sum --DEVICE=emu \
		--KERNEL=k.cu --PLAN=p.json >out.log 2>&1
	id=$(cat trials/*/trial.json | jq -r .trial | sort -n | tail -n 1)
	ok "sums in another order each time" is judge rule-dependent '["order"]'
fi
finish
