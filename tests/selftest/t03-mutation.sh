#!/bin/sh
# With any one rule of the judge switched off the self-test fails, and names the rule. The rules are found in
# the sources, so that a new one without a specimen fails here. Ordinary programs hold no trace of the switch.
# SPDX-License-Identifier: MIT
. "$(dirname "$0")/../lib.sh"
cd "$root" || exit 1

trace() { grep -l -a -E 'TS_OFF|judge\.topk|poison\.outputs' "$build"/bin/[a-z]* | grep -v '/selftest$'; }
ok "no program of an ordinary build knows of a switch" same "$(grep -l -a TS_OFF "$build"/bin/[a-z]*)" ""
ok "nor any name that is no reason code" same "$(trace)" ""

case $build in *-san) finish; exit ;; esac
[ -x "$build/bin/box" ] && "$build/bin/selftest" --DEVICE=emu >/dev/null || skip_all "nothing is emulated here"

# The programs that the self-test needs, with the switch in them.
zoo=$root/.build-zoo
programs="selftest checker box child elfscan"
(
	flock 9
	# shellcheck disable=SC2046
	make -s ZOO=1 -j2 $(for p in $programs; do echo ".build-zoo/bin/$p"; done) >"$work/make" 2>&1
) 9>"$root/.build/zoo.lock" || { cat "$work/make"; exit 1; }

# Where the judge decides, and what it decides on. Switches of arms, workers and stages have tests of their own.
judge=$(ls stages/lib/compare*.c stages/lib/oracle*.c stages/lib/proof*.c stages/lib/fill*.c stages/lib/memory.c \
	stages/lib/gpu_check.c stages/lib/gpu_memory.c stages/gpu/*.cu stages/gpu/*.h stages/roles/checker.c)
# shellcheck disable=SC2086
rules=$(grep -ohE 'DEFENCE\("[^"]+"\)' $judge | sed 's/.*"\(.*\)".*/\1/' | sort -u)

ok "switching nothing off changes nothing" env TS_OFF=nothing "$zoo/bin/selftest" --DEVICE=emu
ok "there are rules" test "$(echo "$rules" | wc -l)" -ge 30

# one RULE: what the self-test says without it
for rule in $rules; do
	echo "$rule"
done | xargs -P 2 -I RULE sh -c 'TS_OFF=RULE "$0/bin/selftest" --DEVICE=emu --out="$1/RULE.json" >"$1/RULE" 2>&1
	echo "exit $?" >>"$1/RULE"' "$zoo" "$work"

noticed() {
	grep -q '^exit 70$' "$work/$1" && grep -q "FAIL  $1 " "$work/$1" && return
	cat "$work/$1"
	return 1
}
for rule in $rules; do
	ok "without $rule it fails, and says so" noticed "$rule"
done
ok "its record says so too" same "$(jq -r .verdict "$work/judge.row.json")" fail
finish
