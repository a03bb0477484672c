#!/bin/sh
# t01-ship.sh - what is shipped of a run: whole, checkable and judged again where nothing but the repository
# is; every kind of touch is seen; and what this repository ships holds.
#
# SPDX-License-Identifier: MIT
. "$(dirname "$0")/../lib.sh"

# The table between the README's markers is the one that what is shipped gives.
same_table() {
	sed -n "/<!-- shipped $1:begin/,/<!-- shipped $1:end/{/<!--/!p}" README.md >"$work/table"
	tools/ship --table "$1" | cmp - "$work/table"
}

# ---- this repository's own ----
cd "$root" || exit 1
BUILD=$build
export BUILD
ok "every shipped record is as its hashes say" tools/ship --check
bytes=$(find champion/shipped reports/shipped tests/bench/evidence* tests/gpu -type f ! -name '*.py' -printf '%s\n' 2>/dev/null |
	awk '{ n += $1 } END { print n + 0 }')
ok "evidence stays below 10 MB (it has $bytes bytes)" [ "$bytes" -lt 10485760 ]
if [ -e .git ]; then
	ok "one's own champion is not the repository's business" git check-ignore -q champion/vector_add/nvidia-h200
	ok "nor one's page" git check-ignore -q reports/index.html
	ok "what is shipped is" not git check-ignore -q champion/shipped/nvidia-h200/vector_add/README.md
	ok "and its page" not git check-ignore -q reports/shipped/nvidia-h200/index.html
fi

for dir in champion/shipped/*/; do
	device=$(basename "$dir")
	grep -q "<!-- shipped $device:begin" README.md || continue
	ok "the README has the table of $device" same_table "$device"
done

# ---- a run, shipped from its tree into another one ----
real_tree
ship() { tools/ship "$@"; }
ok "three trials run" has 'run r0001 is done' make iterate SPEC=rmsnorm DEVICE=emu PROPOSER=sweep N=3
champion=$(jq -r 'select(.kept) | .trial' trials/log.jsonl | tail -n 1)
mv "$work/tree" "$work/maker"
real_tree
sed -i 's#"settings": {#&"reply": "/somewhere/else/replies", #' "$work/maker/trials/runs/r0001/run.json"
ok "ship takes a finished tree" has "champion/shipped/emu/rmsnorm: trial $champion" make ship DEVICE=emu FROM="$work/maker"
here=champion/shipped/emu/rmsnorm
ok "the champion's kernel lies ready" cmp "$work/maker/trials/$champion/candidate/kernel.cu" $here/kernel.cu
ok "all its verdicts came along" same 14 "$(find $here/record/trials/"$champion" -name '*.json' | grep -c -E \
	'/(propose|guard|unittest|tune|judge|bench|confirm|promote).json')"
ok "of a path to replies the last part alone" same replies "$(jq -r .settings.reply $here/record/trials/runs/r0001/run.json)"
ok "no run key" same "" "$(find champion reports -name key)"
ok "no emulated builds" same "" "$(find champion -name 'emu-*')"
ok "every closed trial has its line" same 3 "$(wc -l <$here/log.jsonl)"
ok "the page has the ratio" grep -q 'against the naive baseline: .*x (' $here/README.md
ok "and that it is emulated" grep -q EMULATED $here/README.md
ok "recheck's words are kept" grep -q "trial $champion, confirm.json: pass.*agrees" $here/recheck.txt
ok "its links lead to the record" grep -q "href=\"../../../$here/record/trials/$champion/\"" reports/shipped/emu/index.html
ok "the chain holds" has '1 shipped champions, 0 of them' ship --check
ok "make recheck takes its ticks too" sh -c 'mkdir -p tests/bench && ln -sf "$0/tests/bench/recheck.sh" tests/bench/ &&
	make recheck | grep -q " verdicts with raw samples, 0 of them"' "$root"
ok "the table has its line" has '| `rmsnorm` |' ship --table emu
printf 'top\n<!-- shipped emu:begin -->\nold\n<!-- shipped emu:end -->\nbottom\n' >README.md
ok "--readme puts it there" tools/ship --readme emu
ok "between the markers" same_table emu
ok "and nowhere else" same 'top <!-- shipped emu:begin --> <!-- shipped emu:end --> bottom' \
	"$(sed '/:begin/,/:end/{/<!--/!d}' README.md | tr '\n' ' ' | sed 's/ $//')"
ok "a README without markers is a usage error" code 2 tools/ship --readme sim
ok "a second time gives the same" ship --DEVICE=emu --FROM="$work/maker"

# ---- judged again, by nothing but the repository ----
ok "no trial of its own is here" test ! -e trials/log.jsonl
ok "replay agrees" has agrees make replay FROM=$here
ok "and left nothing behind" test ! -e trials
ok "a folder without a record is a usage error" code 2 "$bin/replay" --FROM=specs
ok "so is a trial that is not there" code 2 "$bin/replay" --FROM=$here --TRIAL=0099
ok "adopt takes the folder" has 'run r0001 is done' make adopt FROM=$here SPEC=rmsnorm DEVICE=sim
rm -rf trials champion/rmsnorm
cp -rL specs specs.own && rm specs && mv specs.own specs
cp -r specs/rmsnorm "$work/rmsnorm"
echo more >>specs/rmsnorm/README.md
ok "words about the problem may change" has agrees make replay FROM=$here TRIAL=$champion
echo '// more' >>specs/rmsnorm/reference.cu
ok "the problem may not" code 3 "$bin/replay" --FROM=$here
ok "which check says" has 'another problem than then' ship --check
rm -r specs/rmsnorm && mv "$work/rmsnorm" specs/

cp -r specs/vector_add specs/shipped && sed -i 's/"name": "vector_add"/"name": "shipped"/' specs/shipped/spec.json
ok "no problem may have that folder's name" has "the name 'shipped' is taken" make check SPEC=shipped DEVICE=emu
rm -r specs/shipped

# ---- touched ----
touched() { # touched TEXT WORDS COMMAND: a copy, changed by COMMAND in its folder
	rm -rf champion/shipped/emu && cp -r "$work/good" champion/shipped/emu
	(cd $here && eval "$3")
	ok "$1 is seen" has "$2" ship --check
	ok "and is a failure" code 1 ship --check
}
cp -r champion/shipped/emu "$work/good"
at=record/trials/$champion
touched "a tick" "bench.raw is another" "printf x | dd of=$at/bench.raw bs=1 seek=900 conv=notrunc 2>/dev/null"
touched "a verdict" "judge.json: its upstream is another" "jq '.data.more = 1' $at/tune.json >t && mv t $at/tune.json"
touched "the last verdict" "promote.json is not the one log.jsonl names" \
	"jq '.data.ratio = 9' $at/promote.json >t && mv t $at/promote.json"
touched "a source" "candidate/kernel.cu is another" "echo >>$at/candidate/kernel.cu"
touched "the champion's source" "kernel.cu is not that of trial $champion" "echo >>kernel.cu"
touched "a missing file" "confirm.raw is missing" "rm $at/confirm.raw"
touched "a missing verdict" "guard.json is missing" "rm $at/a1/guard.json"
touched "a missing run" "run.json is missing" "rm record/trials/runs/r0001/run.json"
touched "a key" "a run key is in it" "echo secret >record/trials/runs/r0001/key"
touched "a line of the log" "is not the one log.jsonl names" "jq -c '.promote_sha256 |= (.[63:] + .[:63])' log.jsonl >t && mv t log.jsonl"
touched "a file that is no JSON" "malformed" "echo '{' >$at/judge.json"
rm -rf champion/shipped/emu && cp -r "$work/good" champion/shipped/emu
echo 'int x;' >>$here/record/trials/"$champion"/candidate/kernel.cu
ok "replay of other sources differs" code 1 "$bin/replay" --FROM=$here

# ---- what must not travel ----
rm -rf champion/shipped
raw=$work/maker/trials/$champion/confirm.raw
cp "$raw" "$work/raw" && printf x | dd of="$raw" bs=1 seek=900 conv=notrunc 2>/dev/null
ok "a record that recheck refuses is not shipped" code 1 ship --DEVICE=emu --FROM="$work/maker"
ok "and nothing of it is left" same "" "$(find champion/shipped -type f)"
cp "$work/raw" "$raw"
echo "$HOME/secret/place" >>"$work/maker/trials/$champion/a0/guard.log"
ok "nor names of this machine" has "which is of this machine" ship --DEVICE=emu --FROM="$work/maker"
ok "nothing of it is left" same "" "$(find champion/shipped -type f)"
ok "an unknown device is a usage error" code 2 ship --DEVICE=nvidia-h100 --FROM="$work/maker"
ok "a tree without trials too" code 2 ship --DEVICE=emu --FROM="$work"
finish
