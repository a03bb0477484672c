#!/bin/sh
# Somebody else's record, judged here: make adopt FROM=; problems a device cannot take. The real stages,
# simulated.
. "$(dirname "$0")/../lib.sh"
real_tree
make_quiet() { make "$@" >"$work/said" 2>&1; }

ok "a run of two" make_quiet iterate SPEC=softmax DEVICE=sim PROPOSER=sweep N=2
mkdir "$work/other" && mv trials/0002 "$work/other/0002" && rm -rf trials/0* trials/runs trials/log.jsonl \
	trials/index.tsv trials/history.git trials/.derived champion/softmax
ok "adopt takes a record" make_quiet adopt FROM="$work/other/0002" DEVICE=sim
ok "the problem is the record's" same softmax "$(jq -r .spec trials/0001/trial.json)"
ok "the origin is named" same "$work/other/0002" "$(jq -r .origin.from trials/0001/trial.json)"
ok "its configuration is judged as it is" same tune.adopted "$(jq -r .reason.code trials/0001/tune.json)"
ok "the kernel is the record's" cmp "$work/other/0002/candidate/kernel.cu" trials/0001/candidate/kernel.cu
ok "the plan is the record's" cmp "$work/other/0002/candidate/plan.json" trials/0001/candidate/plan.json
mkdir "$work/folder" && cp specs/softmax/baseline/kernel.cu specs/softmax/baseline/plan.json "$work/folder"
sed -i 's/"value": 256/"value": 64/' "$work/folder/plan.json"
ok "adopt takes a folder of two files" make_quiet adopt FROM="$work/folder" SPEC=softmax DEVICE=sim
ok "a folder of neither is a usage error" has "holds no kernel.cu" make adopt FROM="$work"
# A problem that a device cannot take is refused before anything is made.
rm -f specs && cp -r "$root/specs" specs # the tree's link would lead into the sources
cp -r specs/softmax specs/trees
jq '.name = "trees" | .headers = ["cutlass"]' specs/softmax/spec.json >specs/trees/spec.json
ok "emu takes no header trees: iterate" has "header tree 'cutlass'" make iterate SPEC=trees DEVICE=emu N=1
ok "emu takes no header trees: check" has "header tree 'cutlass'" make check SPEC=trees
# The report follows a run while it is on, and says so only then.
make iterate NEW=1 SPEC=softmax DEVICE=sim PROPOSER=sweep N=3 SIM_SECONDS=3 >said 2>&1 &
seen=no
for _ in $(seq 120); do
	grep -q 'Running: .* of 3 trials closed' reports/index.html 2>/dev/null && seen=yes && break
	sleep 0.25
done
wait
ok "the page says that a run is on" same yes $seen
ok "and no longer when it is done" same 0 "$(grep -c Running: reports/index.html)"
finish
