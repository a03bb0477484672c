#!/bin/sh
# t02-bench.sh - engines of known speed through bench's sessions: the faster one wins, nothing else does.
#
# SPDX-License-Identifier: MIT
. "$(dirname "$0")/../lib.sh"
cd "$work" || exit 1
cc=${CC:-cc} flags="-std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra -Werror -I$root/stages/engine"
san=
case $build in *-san) san=-fsanitize=address,undefined ;; esac
# shellcheck disable=SC2086
ok "the driver builds" $cc -std=gnu11 -g -O1 $san -I"$root/stages/lib" "$root/tests/engine/duel.c" "$build/lib.a" \
	-lcjson -lcrypto -lseccomp -lm -ldl -o duel
ok "a checkpoint" "$build/bin/make-checkpoint" tiny model
paced() { # NAME FLAG...
	name=$1
	shift
	# shellcheck disable=SC2086
	$cc $flags "$@" "$root/tests/engine/paced.c" -lm -o "$name" || echo "cannot build $name"
}
paced champion -DPACE_US=4400
paced native -DPACE_US=5000
paced faster -DPACE_US=4000
paced same -DPACE_US=4400
paced slower -DPACE_US=4640
paced staller -DPACE_US=3300 -DSTALL=3
paced hog -DPACE_US=3900 -DHOG=256
paced late -DPACE_US=2600 -DLATE_US=16000
paced wrong -DPACE_US=4000 -DWRONG=5
# duel WANT STEP ENGINE...: verdict and code. Times are real, and a machine that others use may need another go to see them.
duel() {
	want=$1 step=$2
	shift 2
	for go in 1 2 3 4; do
		./duel "$step" model "$@" >said.txt 2>err.txt || cat err.txt
		[ "$(cut -d" " -f1,2 said.txt)" = "$want" ] && break
	done
	cut -d" " -f1,2 said.txt
}
recheck() { "$build/bin/recheck" "$1" | grep -q "agrees$"; }

ok "10 % faster passes" same "pass ok" "$(duel "pass ok" bench champion faster native)"
ok "... by 10 %" test "$(jq '.data.ratio > 1.05 and .data.ratio < 1.16' bench.json)" = true
ok "... and 25 % against the native engine, by the score" \
	test "$(jq '.data.engine.score | .candidate / .native | . > 1.15 and . < 1.35' bench.json)" = true
ok "... and a stranger agrees" recheck bench.json
ok "a line for every sample" same "$(jq .data.raw.records bench.json)" "$(wc -l <bench.engine.jsonl)"
ok "it is confirmed, with a workload more" same "pass ok" "$(duel "pass ok" confirm champion faster native)"
ok "... and a stranger agrees" recheck confirm.json
ok "5 % slower is rejected" same "reject bench.slower" "$(duel "reject bench.slower" bench champion slower)"
ok "... after one session" same 1 "$(cut -d" " -f3 said.txt)"
ok "... and a stranger agrees" recheck bench.json
./duel bench model champion same >said.txt
ok "the same again does not pass" grep -qE "^(reject|inconclusive|invalid) bench\.(below_margin|slower|inconclusive|invalid_env) " said.txt
ok "... and a stranger agrees" recheck bench.json
ok "one that stalls in every third batch" same "reject bench.spread" "$(duel "reject bench.spread" bench champion staller)"
ok "... and a stranger agrees" recheck bench.json
ok "one that holds 256 MiB" same "reject bench.memory" "$(duel "reject bench.memory" bench champion hog)"
ok "... and a stranger agrees" recheck bench.json
ok "one that is fast and says its first token late" same "reject bench.ttft" "$(duel "reject bench.ttft" bench champion late native)"
ok "... and a stranger agrees" recheck bench.json
sed 's/"stamp_ns":\[[0-9]*/"stamp_ns":[1/' bench.engine.jsonl >other && mv other bench.engine.jsonl
ok "... not when the lines are others" sh -c '! "$1" bench.json | grep -q "agrees$"' sh "$build/bin/recheck"
ok "one whose timed tokens are wrong" same "reject bench.wrong_output" "$(duel "reject bench.wrong_output" bench champion wrong)"
ok "... in the session that it happened" same 1 "$(cut -d" " -f3 said.txt)"
ok "... and a stranger agrees" recheck bench.json

# The plain engine against itself, with threads that take the processors whenever the other one is asked. Where the kernel shares
# them out by process group that takes little from a rival, and here it wins nothing; that a champion which is slower in company
# than alone ends a session is shown in tests/unit/test_session.c.
for name in honest spinner; do
	# shellcheck disable=SC2086
	$cc $flags -DCHEAT=$name "$root/tests/engine/cheat.c" -lm -lpthread -o $name || echo "cannot build $name"
done
./duel bench model honest spinner >said.txt
ok "one that spins between its own turns does not pass" grep -qE "^(reject|inconclusive|invalid) bench\." said.txt
ok "... and a stranger agrees" recheck bench.json
finish
