#!/bin/sh
# Every cheat in one form, and every honest kernel: one check a specimen. `make zoo-full` has the disguises.
. "$(dirname "$0")/../lib.sh"
cd "$root" || exit 111
DEVICE=emu tests/zoo/zoo -o "$work/zoo" >"$work/zoo.out" 2>&1
while IFS='	' read -r right text; do
	ok "$text" "$right"
done <<E2
$(jq -r '[(.ok | tostring), "\(.kind) \(.id // "") \(.name)\(if .form == "-" then "" else " as " + .form end): \(if .ok then "as stated" else "wanted \(.want.stage) \(.want.code | join(" or ")), got \(.ended.stage) \(.ended.code) \(.ended.words)" end)"] | @tsv' "$work/zoo.jsonl")
E2
tail -n 3 "$work/zoo.out" | sed 's/^/# /'
ok "its last line" has "0 passed; honest: " tail -n 1 "$work/zoo.out"
ok "a page" grep -q '<title>Touchstone: the zoo' "$work/zoo.html"
finish
