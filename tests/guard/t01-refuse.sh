#!/bin/sh
# What guard refuses, with the code and the words it gives, through `make try`; and what it accepts.
. "$(dirname "$0")/../lib.sh"
real_tree

kernel=$root/specs/vector_add/baseline/kernel.cu
plan=$root/specs/vector_add/baseline/plan.json
id=0

# try DEVICE [SPEC]: judge ./k.cu and ./p.json; leaves the trial's id in $id.
try() {
	make try SPEC="${2:-vector_add}" DEVICE="$1" KERNEL=k.cu PLAN=p.json >out.log 2>&1 || true
	id=$(cat trials/*/trial.json | jq -r .trial | sort -n | tail -n 1)
}

# refused CODE TEXT: what guard's verdict says of the last trial.
refused() {
	jq -e --arg c "$1" --arg t "$2" '.verdict == "reject" and .reason.code == $c and
		(.reason.message | contains($t))' "trials/$id/a0/guard.json" ||
		{ jq -c .reason "trials/$id/a0/guard.json"; tail -n 5 out.log; return 1; }
}

# source CODE TEXT: the baseline with the text of stdin behind it, on sim.
source() {
	{ cat "$kernel"; cat; } >k.cu
	cp "$plan" p.json
	try sim
	ok "$1: $2" refused "$1" "$2"
}

# plan CODE TEXT FILTER: the baseline with its plan through jq.
plan() {
	cp "$kernel" k.cu
	jq "$3" "$plan" >p.json
	try sim
	ok "$1: $2" refused "$1" "$2"
}

source guard.include 'stdio.hx' <<'E'
#include <stdio.hx>
E
source guard.directive '#line' <<'E'
#line 1 "verdict.json"
E
source guard.reserved "declared anew" <<'E'
__device__ void __syncthreads() {}
E
source guard.attribute "constructor" <<'E'
__attribute__((constructor)) void f() {}
E
source guard.host_code "<<<" <<'E'
void f() { g<<<1, 1>>>(); }
E
source guard.lexical "without an end" <<'E'
/* open
E
printf '// caf\303\251\n' >tail.txt
source guard.ascii "0xc3" <tail.txt
printf '// %s\n' "nvapi""-0123456789abcdefghijABCDEF" >tail.txt
source guard.credential "API key" <tail.txt

plan guard.plan "unknown key 'host'" '. + {host: 1}'
plan guard.plan "no input is named 'q'" '.launches[0].args[0] = {in: "q"}'
plan guard.plan "unknown name 'Q'" '.launches[0].grid = ["Q"]'
plan guard.limits "more threads than a block" '.launches[0].block = [1024, 2]'
plan guard.limits "outside 1..2147483647" '.launches[0].grid = [0]'
plan guard.limits "break one at workload" '.constraints = ["1 > 2"]'
plan guard.plan "it makes a cycle" '.launches[0].block = ["occupancy(vector_add)"]'
plan guard.plan "more than 4 configurations" '.tunables = ([range(5)] | map({key: "T\(.)", value: {values: [1, 2],
	value: 1, choose: [{when: "N > \(.)", value: 2}]}}) | from_entries) | .launches[0].grid = [64] |
	.launches[0].block = [64] | .constraints = []'

cp "$kernel" k.cu
printf '{"schema":"touchstone/plan/1","schema":"touchstone/plan/1"}\n' >p.json
try sim
ok "guard.json: duplicate key" refused guard.json schema

# Sizes that nobody shows, but anybody may draw.
edge() {
	cp "$root/specs/transpose/baseline/kernel.cu" k.cu
	jq "$2" "$root/specs/transpose/baseline/plan.json" >p.json
	try sim transpose
	ok "an edge: $1" refused guard.limits "$1"
}
edge "is 0: outside 1..2147483647 (at the least or greatest sizes that may be drawn)" \
	'.launches[0].grid[0] = "R == 512 && C == 1 ? 0 : ceil_div(C, TILE)"'
edge "break one at the least or greatest sizes that may be drawn" '.constraints = ["R < 512 || C > 1"]'

# the same again: known by its hash, and only in the trials that this one may see
cp "$plan" p.json
try sim
ok "the baseline passes on sim" jq -e '.verdict == "pass" and .outputs["a0/artefact/sim"]' \
	"trials/$id/a0/guard.json"
first=$id
try sim
ok "the same candidate is known" refused guard.duplicate "trial $first"

make redo TRIAL="$first" >out.log 2>&1 || true
id=$(cat trials/*/trial.json | jq -r .trial | sort -n | tail -n 1)
ok "redo is the same again on purpose" jq -e '.verdict == "pass"' "trials/$id/a0/guard.json"

if [ "$(uname -m)" = x86_64 ] || [ "$(uname -m)" = aarch64 ]; then
	{ cat "$kernel"; echo '__device__ void f() { asm("nop;"); }'; } >k.cu
	try emu
	ok "guard.asm on emu" refused guard.asm "inline assembly"
	{ cat "$kernel"; echo '__device__ int counter;'; echo '__global__ void g() { counter++; }'; } >k.cu
	try emu
	ok "guard.module_state" refused guard.module_state ""
	{ cat "$kernel"; echo '#define JOIN(a, b) a##b'
		echo 'extern "C" char JOIN(em, u_log)[]; __global__ void g() { JOIN(em, u_log)[0]++; }'; } >k.cu
	try emu
	ok "a name put together" refused guard.undefined_symbol "emu_log"
	{ cat "$kernel"; echo 'int broken'; } >k.cu
	try emu
	ok "compile.error" refused compile.error ""
	ok "its log has no path of this machine" not grep -E '/(tmp|home|root|work|usr|dev)/' \
		"trials/$id/a0/guard.log"
	{ cat "$kernel"; echo 'extern "C" __global__ void big(float *y) { __shared__ float s[40000];'
		echo 's[threadIdx.x] = 1; __syncthreads(); y[0] = s[0]; }'; } >k.cu
	jq '.entries += ["big"] | .launches += [{entry: "big", grid: [1], block: [32], shared_bytes: 100000,
		when: "N > 1000", args: [.launches[0].args[] | select(.out)]}]' "$plan" >p.json
	try emu
	ok "static and dynamic shared memory together" refused guard.limits "launched with 100000 more"
	cp "$plan" p.json
	sed 's/vector_add *(/other(/' "$kernel" >k.cu
	try emu
	ok "guard.entry_missing" refused guard.entry_missing "vector_add"
	cp "$kernel" k.cu
	try emu
	ok "the baseline passes on emu" jq -e '.verdict == "pass" and .outputs["a0/artefact/emu-fast"] and
		.outputs["a0/artefact/emu-sanitize"] and (.isolation | length > 2)' \
		"trials/$id/a0/guard.json"
	ok "... under full coverage" jq -e '.data.coverage == "full"' "trials/$id/a0/guard.json"
	# Only an optimiser without instrumentation sees that the call is never made.
	scope=$id
	cat >k.cu <<'E'
__device__ int untested();
extern "C" __global__ void k(const float *x, const float *y, float *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	int a[4];
	for (int j = 0; j < 4; j++)
		a[j] = j + threadIdx.z * 0;
	if (a[1] + a[3] != 4)
		out[0] = untested();
	if (i < n) out[i] = x[i] + y[i];
}
E
	echo '{"schema":"touchstone/plan/1","entries":["k"],"launches":[{"entry":"k",
		"grid":["ceil_div(N, 128)"],"block":[128],"args":[{"in":"x"},{"in":"y"},{"out":"out"},
		{"axis":"N","type":"i32"}]}]}' >p.json
	try emu
	ok "a build for the tests fails alone: it passes, and the record says less was tested" jq -e '
		.verdict == "pass" and .data.coverage == "reduced" and
		(.reason.message | contains("lower coverage, not built: emu-sanitize (compile.error)"))' \
		"trials/$id/a0/guard.json"
	ok "unittest says so too" jq -e '.data.coverage == "reduced" and .data.sanitizers == false and
		(.reason.message | contains("no sanitizers"))' "trials/$id/a0/unittest.json"
	id=$scope
	touch "trials/$id/a0/candidate/notes"
	rm "trials/$id/a0/guard.json"
	"$bin/guard" "trials/$id/a0/guard.json" >out.log 2>&1 || true
	ok "guard.scope" refused guard.scope "besides kernel.cu"
fi
ok "-h prints a page" has 'usage: guard' "$bin/guard" -h
finish
