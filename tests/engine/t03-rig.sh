#!/bin/sh
# t03-rig.sh - what only shows over several batches, sequences and many ids; and honest arithmetic of another kind.
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
cheat() { # NAME [FLAGS...]
	cheat_name=$1
	shift
	# shellcheck disable=SC2086
	$cc $flags "$@" -DCHEAT="$cheat_name" "$root/tests/engine/cheat.c" -lm -lpthread -o "$cheat_name"
}
ok "the driver builds" drive
ok "a checkpoint" "$build/bin/make-checkpoint" tiny model
try() { ./drive "$@" >out.json 2>err.txt || cat err.txt; }

while read -r name want batch prompt steps why; do
	cheat "$name"
	try "./$name" model "$batch" "$prompt" "$steps"
	ok "$name: $why" same "$want" "$(jq -r .verdict out.json)"
done <<'END'
late margin 2 40 18 right until the first batch comes again
rows margin 3 40 12 each answer is another sequence's
int4 margin 4 60 32 weights of four bits
hog died 1 8 64 three gigabytes where two are allowed
END
cheat late && try ./late model 2 40 18
ok "an answer that does not repeat is recorded" same false "$(jq .repeats out.json)"
ok "and told with its place" grep -Eq "batch 3 of 3, sequence [01], step [0-9]+: it said 7 where the model says" out.json
cheat hog && try ./hog model 1 8 64
ok "one that ends is told with its last words" has "before it was ready: it ended before it had answered, or not with exit code 0 (exit 3); its last words: engine: out of memory" jq -r .why out.json
# Sums in another order, fused, in vectors: not a bit the same, and right.
cheat honest -O3 -ffast-math -march=native && try ./honest model 3 33 24
ok "fast arithmetic is honest" same ok "$(jq -r .verdict out.json)"
ok "and repeats" same true "$(jq .repeats out.json)"
# Lossless speculation: every id is the model's own choice, several at a time.
speculate() {
	# shellcheck disable=SC2086
	$cc $flags "$root/tests/engine/speculate.c" -lm -o speculate &&
		$cc $flags "$root/specs/qwen3-tiny/baseline/engine.c" -lm -o plain
}
ok "an engine that speculates" speculate
for shape in "1 40 64" "3 33 24" "2 1 20" "32 7 2"; do
	# shellcheck disable=SC2086
	try ./speculate model $shape
	ok "n-gram speculation is honest: batch, prompt, steps $shape" same ok "$(jq -r .verdict out.json)"
	ok "... and repeats" same true "$(jq .repeats out.json)"
done
# 1 sequence, the prompt 5 6 7 5 6 7 5 6, 200 ids: greedy decoding of so small a model runs into circles.
request() { printf 'REQ1\1\0\0\0\10\0\0\0\310\0\0\0'; for id in 5 6 7 5 6 7 5 6; do printf "\\$id\0\0\0"; done; }
request | ./speculate model >fast.ids 2>fast.err
request | ./plain model >plain.ids
ok "its ids are the plain engine's" cmp fast.ids plain.ids
ok "all of them" same 804 "$(wc -c <fast.ids)"
ok "and drafts were taken" grep -Eq "^[1-9][0-9]* of [0-9]+ drafted" fast.err
sed 's/^/# /' fast.err
cheat int8 && try ./int8 model 16 40 64
# One id tells nothing of eight bits; two thousand may: what they cost on this checkpoint is recorded either way.
ok "weights of eight bits: judged, its mean regret on record" jq -e '.regret.tokens == 2048 and .regret.mean > 0' out.json
jq -c '{verdict, regret, gates}' out.json | sed 's/^/# int8 /'
finish
