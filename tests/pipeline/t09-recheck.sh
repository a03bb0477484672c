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
edit .
printf 'x' | dd of=forged/bench.raw bs=1 seek=1000 conv=notrunc 2>/dev/null
ok "nor a tick" code 1 "$bin/recheck" forged/bench.json
truncate -s 1000 forged/bench.raw
ok "half a raw file is malformed" code 3 "$bin/recheck" forged/bench.json
finish
