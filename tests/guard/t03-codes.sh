#!/bin/sh
# t03-codes.sh - the list of reasons is closed both ways: each code is raised somewhere, what is raised is in the list.
#
# Most codes stand in the source whole. Those of judge and unittest are put together from a stage and a word of
# what went wrong; their words must stand where such words are made.
#
# SPDX-License-Identifier: MIT
. "$(dirname "$0")/../lib.sh"
cd "$root" || exit 1

sed -n 's/^	{"\([a-z]*\.[a-z0-9_]*\)",.*/\1/p' stages/lib/reason.c >"$work/codes"
# DEFENCE("x") names a rule and raises nothing.
sources=$(find stages tools -name '*.c' -o -name '*.h' | grep -v '^stages/lib/reason\.[ch]$')
# shellcheck disable=SC2086
sed 's/DEFENCE("[^"]*")//g' $sources | grep -oE '"[a-z]+\.[a-z0-9_]+' | tr -d '"' | sort -u >"$work/said"

composed() { # CODE: is its word one that its stage puts behind its name?
	word=${1#*.}
	case $1 in
	judge.engine_* | unittest.engine_*) grep -qF "\"${word#engine_}\"" stages/lib/engine_call.c ;;
	judge.held_out) grep -q 'held_out ? "held_out"' stages/judge.c ;;
	judge.*) grep -qE "(return|word =|\"%s\",) \"$word\"" stages/lib/proof*.c || grep -qF "\"$word\"" stages/lib/engine_judge.c ;;
	unittest.*) sed -n '/SAME\[\] =/,/NULL}/p' stages/unittest.c | grep -qF "\"$word\"" || grep -qF "\"$word\"" stages/lib/engine_judge.c ;;
	*) return 1 ;;
	esac
}
unraised() {
	while read -r code; do
		grep -qxF "$code" "$work/said" || composed "$code" || echo "nothing raises $code"
	done <"$1" | grep . && return 1
	return 0
}
ok "there is a list" test "$(wc -l <"$work/codes")" -gt 150
ok "every reason code is raised somewhere" unraised "$work/codes"
printf 'judge.slack\n' >"$work/none"
ok "... and one that is not is seen" not unraised "$work/none"

unlisted() { # of what is set as a verdict's reason
	# shellcheck disable=SC2086
	tr '\n' ' ' <"$1" | grep -oE 'verdict_set\([^;]*;' | sed 's/DEFENCE("[^"]*")//g' | grep -oE '"[a-z]+\.[a-z0-9_]+"' | tr -d '"' |
		sort -u | grep -vxF -f "$work/codes" | grep -v '\.json$' && return 1
	return 0
}
# shellcheck disable=SC2086
cat $sources >"$work/all.c"
ok "every code that a stage sets is in the list" unlisted "$work/all.c"
echo 'verdict_set(v, V_REJECT, "judge.slack", "x");' >"$work/bad.c"
ok "... and one that is not is seen" not unlisted "$work/bad.c"
finish
