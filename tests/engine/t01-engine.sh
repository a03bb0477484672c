#!/bin/sh
# t01-engine.sh - the plain engine passes, and everything around it that cheats or breaks is told by name.
#
# SPDX-License-Identifier: MIT
. "$(dirname "$0")/../lib.sh"
cd "$work" || exit 1
cc=${CC:-cc} flags="-std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra -Werror -I$root/stages/engine"
san=
case $build in *-san) san=-fsanitize=address,undefined ;; esac
drive() {
	# shellcheck disable=SC2086
	$cc -std=gnu11 -g -O1 $san -I"$root/stages/lib" "$root/tests/engine/drive.c" "$build/lib.a" -lcjson -lcrypto -lseccomp \
		-lm -ldl -lpthread -o drive
}
plain() {
	# shellcheck disable=SC2086
	$cc $flags "$root/specs/qwen3-tiny/baseline/engine.c" -lm -o plain
}
ok "the driver builds" drive
ok "the plain engine builds" plain
ok "a checkpoint" "$build/bin/make-checkpoint" tiny model
verdict() { ./drive "$@" 2>&1 | jq -r .verdict; }

./drive ./plain model 3 37 16 >out.json
ok "the plain engine's tokens are the model's" same ok "$(jq -r .verdict out.json)"
ok "it ended as it should" same "exit 0" "$(jq -r ".workloads[0].end" out.json)"
ok "confined" sh -c 'jq -r .isolation out.json | grep no_new_privs | grep rlimits | grep -q seccomp'
ok "the first step came before the last" test "$(jq '.workloads[0] | .ready_ms > 0 and .first_ms > 0 and .total_ms > .first_ms' out.json)" = true
ok "one sequence of one id" same ok "$(verdict ./plain model 1 1 40)"

while read -r name want limit why; do
	# shellcheck disable=SC2086
	$cc $flags -DCHEAT="$name" "$root/tests/engine/cheat.c" -lm -lpthread -o "$name" 2>"$name.err" || cat "$name.err"
	got=$(verdict "./$name" model 2 60 18 "$limit")
	# What is said unasked is too early or too much, by when it arrives.
	case $name-$got in extra-early | early-extra) got=$want ;; esac
	ok "$name: $why" same "$want" "$got"
done <<'END'
honest ok 60 nothing changed
early early 60 answers before it was asked
extra extra 60 a step more than asked
shorter died 60 a step less
constant margin 60 one id for ever
first margin 60 a guess for the first id
window margin 60 only the last 24 tokens of the prompt
cutter margin 60 half the vocabulary
memoriser margin 60 the first answer again
beyond range 60 an id outside the vocabulary
greeting garbage 60 says something else than ready
hang timeout 3 never answers
deaf timeout 3 never reads
crash died 60 aborts
network ok 60 finds no network, and is judged by its tokens
reader ok 60 finds no file but its model
writer ok 60 can write nowhere
prober ok 60 reads, debugs and signals no process but its own
shelf ok 60 leaves a segment, a queue and a key for a later process
bomb ok 60 as many processes as it may have
orphan ok 60 a grandchild that would outlive it
flood ok 60 five megabytes of words
END
ok "shelf: ... which finds none of them" same ok "$(verdict ./shelf model 2 60 18)"
left() { for p in /proc/[0-9]*/cmdline; do { tr "\0" " " <"$p"; } 2>/dev/null | grep -qE "^$work/(orphan|bomb) " && echo "$p"; done; }
ok "nothing of theirs is left" same "" "$(left)"
finish
