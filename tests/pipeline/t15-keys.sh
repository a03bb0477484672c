#!/bin/sh
# The run key is committed before anything is proposed, keys follow from it as stages/lib/rng.h says, and what a
# verdict publishes gives that step's inputs to anyone, and no other step's.
# SPDX-License-Identifier: MIT
. "$(dirname "$0")/../lib.sh"
command -v openssl >/dev/null || skip_all "no openssl to compute an HMAC with"
real_tree
. "$root/tests/pipeline/inputs.sh"
run=trials/runs/r0001

make iterate DEVICE=sim PROPOSER=sweep N=3 >"$work/log" 2>&1
ok "a run of three trials" test "$(ls trials/*/promote.json | wc -l)" = 3
key=$(jq -r .key_sha256 $run/run.json)
ok "run.json commits to the key" same "$(sha256sum <$run/key | cut -d ' ' -f 1)" "$key"
ok "a key of 32 bytes, for its owner alone" same "$(stat -c '%s %a' $run/key)" "32 600"
ok "every verdict names it" same "$(jq -r .inputs.key trials/*/*.json trials/*/a?/*.json 2>/dev/null | grep -v null | sort -u)" "$key"
envelopes=$(grep -l '"touchstone/verdict/1"' trials/*/*.json trials/*/a?/*.json)
ok "every single one" same "$(jq -r 'select(.inputs.key == null) | input_filename' $envelopes)" ""
ok "it was there before the first proposal" test $run/key -ot trials/0001/a0/propose.json
ok "and so was what commits to it" test $run/run.json -ot trials/0001/a0/propose.json
ok "the key itself is in no other file" sh -c '
	hex=$(od -An -v -tx1 "$1/key" | tr -d " \n"); ! grep -r -l -i -e "$hex" trials reports 2>/dev/null' sh $run

# HMAC-SHA-256 of a label under a key in hex
hmac() { printf %s "$2" | openssl dgst -sha256 -mac HMAC -macopt "hexkey:$1" | sed 's/.* //'; }
runkey=$(od -An -v -tx1 $run/key | tr -d ' \n')
stage_key() { hmac "$(hmac "$runkey" "trial:$1")" "stage:$2"; }
published() { jq -r '.data.stage_key // empty' "trials/$1/$2.json"; }
seen=
for trial in 0001 0002 0003; do
	for stage in judge bench confirm; do
		got=$(published $trial $stage)
		[ "$got" ] || continue
		seen="$seen $got"
		ok "$trial $stage publishes HMAC(HMAC(run key, trial), stage)" same "$got" "$(stage_key $trial $stage)"
	done
done
ok "keys were published" test -n "$seen"
ok "no two alike" same "$(echo "$seen" | tr ' ' '\n' | sort | uniq -d)" ""

# Somebody else, with the spec, the claim and what judge.json published, but another run key.
inputs $run 0001 judge >"$work/judge"
inputs $run 0001 bench >"$work/bench"
inputs $run 0002 judge >"$work/next"
ok "after the key was given away nothing is drawn" grep -q '^then nothing$' "$work/judge"
mkdir -p "$work/else"
cp -r trials "$work/else/trials"
cd "$work/else" || exit 1
head -c 32 /dev/urandom >$run/key
jq '.replay = true' $run/run.json >r && cp r $run/run.json
published 0001 judge | tr -d '\n' >$run/stage_key.judge
ok "the same shapes and inputs for whoever has the published key" same "$(inputs $run 0001 judge)" "$(cat "$work/judge")"
# common A B: lines that both have, but for the last
common() { sort "$1" | grep -v then >"$work/a"; sort "$2" | grep -v then >"$work/b"; comm -12 "$work/a" "$work/b"; }
inputs $run 0001 bench >"$work/bench2"
ok "nothing of a later step" same "$(common "$work/bench" "$work/bench2" | grep rep)" ""
ok "whose inputs are others" same "$(common "$work/judge" "$work/bench" | grep rep)" ""
rm $run/stage_key.judge
inputs $run 0002 judge >"$work/next2"
ok "nothing of another trial" same "$(common "$work/next" "$work/next2" | grep rep)" ""
ok "nor are its inputs those of this one" same "$(common "$work/judge" "$work/next" | grep rep)" ""
cd "$work/tree" || exit 1
published 0001 judge | tr -d '\n' >$run/stage_key.judge
ok "in a run that is no replay such a file is refused" has "has no place in a run that is no replay" inputs $run 0001 judge
finish
