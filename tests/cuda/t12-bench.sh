#!/bin/sh
# t12-bench.sh - contests on the fake GPU: who wins, who loses, and who is to blame.
#
# The fake GPU's clock is the CPU time of its device thread plus what a kernel asks for with __nanosleep, so a gain
# is known; noise is the host's.
#
# SPDX-License-Identifier: MIT
. "$(dirname "$0")/lib.sh"
need_nvrtc
fake_gpu FAKE_CUDA_GRANULE=65536 FAKE_CUDA_L2=262144
fake_spec
build_it() { (cd "$root" && make -s "${BUILD:-.build}/bench/duel"); }
ok "duel builds" build_it
# as candidate, any time
kernel() {
	candidate "cand/$1" "$2" "$3"
	sed -i "s/\"values\": \[[^]]*\]/\"values\": [$3]/" "cand/$1/plan.json"
}
for k in good wrong hang illegal trap; do kernel $k add_$k 300; done
kernel fast add_good 150
kernel clipped add_clipped 150
kernel slow add_good 600
kernel hopeless add_good 30000
kernel short add_good 1
duel() { printed "$1" timeout 120 "$build/bench/duel" specs/fake_add specs/fake_add/baseline "cand/$2" $3; }

printed() { want=$1; shift; "$@" >.said 2>&1; cat .said; grep -q "$want" .said; }
ok "a faster one passes" duel 'pass ok' fast
ok "a slower one is rejected in one session" duel 'reject bench.slower sessions=1 ' slow
ok "a look is one session, with its times" duel 'B faster by -' slow look
ok "an equal one is below the margin" duel 'reject bench\.' good
ok "a wrong one is its own fault" duel 'reject bench.wrong_output' wrong
ok "and one that is right for usual inputs alone, whatever it was in the judge" duel 'reject bench.wrong_output' clipped
ok "so is an illegal address" duel 'reject bench.fault' illegal
ok "and a trap" duel 'reject bench.fault' trap
ok "a hang costs two seconds, and is its own" duel 'reject bench.timeout' hang
ok "a hopeless one is given up" duel 'given up' hopeless
ok "confirmed in two processes, guards and anchor too" duel 'pass ok sessions=4 ' fast confirm
ok "a hang in a confirmation" duel 'reject confirm.timeout' hang confirm
cp -r specs/fake_add specs/fake_tiny
sed -i 's/"name": "fake_add"/"name": "fake_tiny"/; /"plain"/s/2048/64/g' specs/fake_tiny/spec.json
ok "short kernels run in several copies a window" printed 'windows=[1-9][0-9]* ' timeout 120 \
	"$build/bench/duel" specs/fake_tiny cand/short cand/fast
ok "more than one" grep 'windows=\([2-9]\|1[0-9]\) ' .said
sleep 100 &
other=$!
fake_gpu FAKE_CUDA_GRANULE=65536 FAKE_CUDA_L2=262144 FAKE_NVML_PIDS=$other
ok "with others on the GPU nothing is decided" duel 'invalid bench.invalid_env' fast
kill $other

# Sessions for make bench-aa: they append, and what they say is no false alarm.
fake_gpu FAKE_CUDA_GRANULE=65536 FAKE_CUDA_L2=262144
build_aa() { (cd "$root" && make -s "${BUILD:-.build}/bench/aa" "${BUILD:-.build}/bench/aa_rules"); }
ok "aa builds" build_aa
aa() { timeout 120 "$build/bench/aa" aa.jsonl 60 "$1" 0 specs/fake_add baseline plain; }
ok "two sessions are recorded" aa 2
ok "and a third, later" aa 3
ok "each with its blocks" has 3 jq -s 'map(select((.blocks | length) >= 8 and .blocked.a.n == 40)) | length' aa.jsonl
ok "read without alarm" code 0 "$build/bench/aa_rules" aa.jsonl 100

# The whole pipeline, and a stranger's second look at it.
mkdir -p tests/bench
ln -s "$root/tests/bench/recheck.sh" tests/bench/recheck.sh
ok "a candidate is tried and kept" has KEPT make try SPEC=fake_add DEVICE=cuda KERNEL=cand/fast/kernel.cu \
	PLAN=cand/fast/plan.json
for v in bench confirm; do
	ok "recheck agrees with $v.json" code 0 "$bin/recheck" trials/0001/$v.json
done
ok "make recheck finds both with the champion" has '2 verdicts with raw samples, 0 of them' make recheck
edit() {
	rm -rf forged
	cp -R trials/0001 forged
	jq "$1" trials/0001/confirm.json >forged/confirm.json
}
edit '.data.confirm.sessions[0].workloads[0].drain -= 0.5'
ok "a guard cannot be changed" code 1 "$bin/recheck" forged/confirm.json
edit '.data.confirm.sessions[0].workloads[0].sustained -= 0.5'
ok "nor the other" code 1 "$bin/recheck" forged/confirm.json
# A pass whose samples were not all verified is none: the 500th record says so, hashes as they should be.
edit .
printf '\000' | dd of=forged/confirm.raw bs=1 seek=$((32 + 32 * 500 + 31)) conv=notrunc 2>/dev/null
jq --arg sha "$(sha256sum <forged/confirm.raw | cut -c1-64)" '.outputs["confirm.raw"] = $sha' \
	trials/0001/confirm.json >forged/confirm.json
ok "nor may an output go unverified" has 'was not verified' "$bin/recheck" forged/confirm.json
# The reference is another kernel: a baseline may be wrong, and is found out before anything is measured.
cp -r specs/fake_add specs/fake_sick
sed -i 's/"name": "fake_add"/"name": "fake_sick"/' specs/fake_sick/spec.json
cp cand/wrong/kernel.cu cand/wrong/plan.json specs/fake_sick/baseline/
ok "a rival that is wrong from the start is nobody's win" has 'bench invalid bench.rival' sh -c \
	'make try SPEC=fake_sick DEVICE=cuda KERNEL=cand/fast/kernel.cu PLAN=cand/fast/plan.json 2>&1 | tr -s " \t" " "'
v=$(grep -l '"bench.rival"' trials/*/bench.json)
ok "recheck has nothing to say" has 'nothing was timed' "$bin/recheck" "$v"
ok "a profile is on record" jq -e '.data.roofline[0] | .own_share > 0.5 and .launches[0].registers > 0' trials/0001/bench.json
ok "and the machine's state around each session" jq -e '(.data.machine.states | length) >= 5' trials/0001/bench.json
finish
