#!/bin/sh
# A run of the real stages on the simulated device, what it leaves, and what does nothing.
. "$(dirname "$0")/../lib.sh"
real_tree

listing() { find . -path ./trials/.lock -prune -o -type f -print | sort; }

ok "make -n iterate exits 0" code 0 make -n iterate DEVICE=sim
ok "make -q iterate says there is work" code 1 make -q iterate DEVICE=sim
ok "make -t is refused" code 2 make -t iterate DEVICE=sim
ok "dry runs wrote nothing" not test -e trials
ok "iterate itself is inert under -n" has 'start nothing' env MAKEFLAGS=n "$bin/iterate" --N=1
ok "a stage is inert under -n" code 2 env MAKEFLAGS=n "$bin/guard" trials/0001/a0/guard.json
ok "check of no problem is a usage error" code 2 "$bin/check" --SPEC=no_such_spec
ok "replay of no trial is one too" code 2 "$bin/replay" --TRIAL=0001

ok "four trials run" has 'run r0001 is done' make iterate DEVICE=sim PROPOSER=sweep N=4
for id in 0001 0002 0003 0004; do
	ok "trial $id has its 14 verdicts" same 14 "$(find trials/$id -maxdepth 2 -name '*.json' \
		! -name trial.json ! -name proposal.json ! -path '*candidate*' \
		-exec jq -r .schema {} + | grep -c '^touchstone/verdict/1$')"
done
keys='["schema","run","stage","trial","attempt","verdict","status","reason","inputs","outputs","device","proposer","simulated","emulated","started","elapsed_s","tool","isolation"]'
ok "envelope keys are in order" jq -e "keys_unsorted[:18] == $keys" trials/0001/a0/guard.json
ok "simulated is said" jq -e '.simulated and (.emulated | not)' trials/0001/bench.json
ok "the run key is private" same 600 "$(stat -c %a trials/runs/r0001/key)"
ok "its hash is pinned" same "$(sha256sum <trials/runs/r0001/key | cut -d' ' -f1)" \
	"$(jq -r .key_sha256 trials/runs/r0001/run.json)"
ok "the log has a line a trial" same 4 "$(wc -l <trials/log.jsonl)"
ok "the index too" same 4 "$(wc -l <trials/index.tsv)"
ok "history has a branch a trial" same 4 \
	"$(git --git-dir=trials/history.git for-each-ref refs/heads/trial | wc -l)"
ok "history is sound" git --git-dir=trials/history.git fsck --strict
ok "a report was written" test -s reports/index.html
if [ -e champion/vector_add/sim ]; then
	kept=$(jq -r .trial champion/vector_add/sim/evidence/promote.json)
	ok "the champion's source is the trial's" \
		cmp champion/vector_add/sim/kernel.cu "trials/$kept/candidate/kernel.cu"
	ok "make champion names it" has "trial $kept" make champion SPEC=vector_add
fi
ok "replay judges a trial again and agrees" has agrees "$bin/replay" --TRIAL=0002
ok "replay of a damaged source does not" code 1 sh -c '
	cp -a trials/0002/candidate keep; echo "// more" >>trials/0002/candidate/kernel.cu
	"$1/replay" --TRIAL=0002; got=$?
	rm -r trials/0002/candidate; mv keep trials/0002/candidate; exit $got' sh "$bin"
ok "status says finished" has finished make status
ok "resume has nothing to do" has 'nothing to resume' make resume
before=$(listing | wc -l)
ok "make -n plans no step of a finished run" not has 'run trials' \
	make -n -f tools/make/trials.mk TS_RUN=trials/runs/r0001 TS_RUNNER=run
ok "an unknown problem is a usage error" has 'no problem' make iterate SPEC=nope
ok "so is a bad number" has 'whole number' make iterate N=many
ok "a malformed problem is refused before there is a run" code 3 sh -c '
	rm specs; cp -r "$2/specs" specs; mkdir specs/bad; echo "{}" >specs/bad/spec.json
	"$1/iterate" --SPEC=bad --DEVICE=sim; got=$?
	rm -r specs; ln -s "$2/specs" specs; exit $got' sh "$bin" "$root"
ok "nothing of that left a trace" same "$before" "$(listing | wc -l)"

ok "the next iterate is a new run that starts from the record" \
	has 'records up to trial 0004' make iterate DEVICE=sim PROPOSER=sweep N=1
ok "its trial is number 5" test -s trials/0005/promote.json
ok "its state counts all five" jq -e '.data.after.closed == 5' trials/0005/promote.json
ok "try judges my own files" has 'try: k.cu' sh -c '
	cp specs/vector_add/baseline/kernel.cu k.cu; echo "// mine" >>k.cu
	make try DEVICE=sim SPEC=vector_add KERNEL=k.cu PLAN=specs/vector_add/baseline/plan.json'
ok "its claim says where it came from" jq -e '.origin.kind == "try"' trials/0006/trial.json
ok "the same files again: the summary says why not" \
	has 'because   a0/guard: trial 0006 was this candidate' \
	make try DEVICE=sim SPEC=vector_add KERNEL=k.cu PLAN=specs/vector_add/baseline/plan.json
ok "and what to do" has 'make redo runs it again' "$bin/status"
ok "redo makes a new trial of an old one" has '0008' make redo DEVICE=sim TRIAL=0002
finish
