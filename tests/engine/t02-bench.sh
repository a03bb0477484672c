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
paced champion -DPACE_US=2200
paced native -DPACE_US=2500
paced faster -DPACE_US=2000
paced same -DPACE_US=2200
paced slower -DPACE_US=2316
paced staller -DPACE_US=1650 -DSTALL=3
paced hog -DPACE_US=1950 -DHOG=256
paced late -DPACE_US=1300 -DLATE_US=8000
paced wrong -DPACE_US=2000 -DWRONG=5
duel() { ./duel model "$@" >out.json 2>err.txt || cat err.txt; jq -r '"\(.verdict) \(.code)"' out.json; }

ok "10 % faster passes" same "pass ok" "$(duel champion faster native)"
ok "... by 10 %" test "$(jq '.ratio > 1.08 and .ratio < 1.12' out.json)" = true
ok "... and 25 % against the native engine, by the score" \
	test "$(jq '.engine.score | .candidate / .native | . > 1.22 and . < 1.28' out.json)" = true
ok "5 % slower is rejected" same "reject bench.slower" "$(duel champion slower)"
ok "... after one session" same 1 "$(jq .sessions out.json)"
duel champion same >said.txt
ok "the same again does not pass" grep -qxE "(reject|inconclusive) bench\.(below_margin|slower|inconclusive)" said.txt
ok "one that stalls in every third batch" same "reject bench.spread" "$(duel champion staller)"
ok "one that holds 256 MiB" same "reject bench.memory" "$(duel champion hog)"
ok "one that is fast and says its first token late" same "reject bench.ttft" "$(duel champion late native)"
ok "one whose timed tokens are wrong" same "reject bench.wrong_output" "$(duel champion wrong)"
ok "... in the session that it happened" same 1 "$(jq .sessions out.json)"
finish
