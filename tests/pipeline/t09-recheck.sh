#!/bin/sh
# tools/recheck agrees with bench on real records, and with nothing that was touched.
. "$(dirname "$0")/../lib.sh"
real_tree

ok "three trials run" has 'run r0001 is done' make iterate DEVICE=sim PROPOSER=sweep N=3
for v in trials/000[123]/bench.json trials/000[123]/confirm.json; do
	ok "recheck agrees with $v" code 0 "$bin/recheck" "$v"
done

# edit FILTER: a copy of trial 0001 with bench.json changed by jq
edit() {
	rm -rf forged
	cp -R trials/0001 forged
	jq "$1" trials/0001/bench.json >forged/bench.json
}
edit '.data.decide.sessions[0].theta += 0.01'
ok "a session's theta cannot be changed" code 1 "$bin/recheck" forged/bench.json
edit '.data.decide.sessions[0].workloads[0].blocks[3] += 0.01'
ok "nor a block" code 1 "$bin/recheck" forged/bench.json
edit '.verdict = "inconclusive"'
ok "nor the verdict" code 1 "$bin/recheck" forged/bench.json
edit '.data.prereg.decide.margin = 0.5'
ok "nor the margin: the file written before says otherwise" code 1 "$bin/recheck" forged/bench.json
ok "the record names the rule and the look" jq -e '.data.prereg.confirm.rule == "touchstone-bench-rule-2" and
	(.data.confirm.look == 1 or .data.confirm.look == 2)' "$(grep -l '"look":' trials/*/confirm.json | head -n 1)"
edit '.data.prereg.decide.rule = "touchstone-bench-rule-3"'
ok "a rule from elsewhere is malformed" code 3 "$bin/recheck" forged/bench.json
edit .
printf 'x' | dd of=forged/bench.raw bs=1 seek=1000 conv=notrunc 2>/dev/null
ok "nor a tick" code 1 "$bin/recheck" forged/bench.json
truncate -s 1000 forged/bench.raw
ok "half a raw file is malformed" code 3 "$bin/recheck" forged/bench.json

# Every thread prints: right, and hundreds of times slower. It must not hold the lane.
cat >flood.cu <<'EOT'
#include <stdio.h>
extern "C" __global__ void k(const float *x, const float *y, float *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n) {
		out[i] = x[i] + y[i];
		printf("%d %f %f %f\n", i, x[i], y[i], out[i]);
	}
}
EOT
cat >flood.json <<'EOT'
{"schema":"touchstone/plan/1","entries":["k"],"launches":[{"entry":"k","grid":["ceil_div(N, 128)"],
"block":[128],"args":[{"in":"x"},{"in":"y"},{"out":"out"},{"axis":"N","type":"i32"}]}]}
EOT
ok "a printf flood is rejected" has 'bench reject bench.slower' sh -c \
	'make try SPEC=vector_add DEVICE=emu KERNEL=flood.cu PLAN=flood.json 2>&1 | tr -s " \t" " "'
v=trials/0004/bench.json
ok "given up, which is on record" has true jq '.data.decide.given_up.times > 20' $v
ok "in seconds; all its sessions would take many minutes" has true jq '.elapsed_s < 120' $v
ok "recheck agrees" code 0 "$bin/recheck" $v
rm -rf forged
cp -R trials/0004 forged
jq '.data.prereg.decide.class.hopeless = 1e9' $v >forged/bench.json
ok "nobody is given up under another rule" has 'was not that slow' "$bin/recheck" forged/bench.json
finish
