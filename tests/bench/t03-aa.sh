#!/bin/sh
# What make bench-aa makes of recorded sessions: power where there is an effect, silence where there is none, and an
# alarm when the recorded noise would have fooled the rule.
. "$(dirname "$0")/../lib.sh"
cd "$work" || exit 1
build_it() { (cd "$root" && make -s "${BUILD:-.build}/bench/aa_rules" "${BUILD:-.build}/bench/aa_page"); }
ok "aa_rules and aa_page build" build_it

# sessions CELL DOSE THETA SD: 48 lines, noise by a fixed generator (sums of uniform numbers)
sessions() {
	awk -v cell="$1" -v dose="$2" -v theta="$3" -v sd="$4" 'function noise(  i, s) {
		for (i = 0; i < 12; i++) { x = (x * 16807) % 2147483647; s += x / 2147483647 }
		return s - 6
	}
	BEGIN { x = 4711; for (r = 0; r < 48; r++) {
		a = 20000 * (1 + 0.02 * noise()); b = a / (1 + theta)
		row = "\"sd\":300,\"n\":40,"
		printf "{\"cell\":\"%s\",\"dose\":%d,\"round\":%d,\"T_ns\":%f,\"theta\":%.9f,\"se\":%f,", cell, dose, r, a, log(1 + theta) + sd * noise(), sd
		printf "\"blocked\":{\"a\":{%s\"mean\":%f,\"median\":%f,\"min\":%f,\"q3\":%f},", row, a, a, a * .98, a * 1.01
		printf "\"b\":{%s\"mean\":%f,\"median\":%f,\"min\":%f,\"q3\":%f}},\"first\":{\"a\":%f,\"b\":%f}}\n", row, b, b, b * .98, b * 1.01, a, b
	} }'
}
{ sessions quiet 0 0 .001; sessions dosed 3 .03 .001; } >sane.jsonl
echo '{"cell":"cut o' >>sane.jsonl # a line that a kill cut off
ok "no alarm" code 0 "$build/bench/aa_rules" sane.jsonl 500
ok "a dose of 3 % is found in every live trial" has '12/12' "$build/bench/aa_rules" sane.jsonl 500
ok "the bound of what was not seen is stated" has '0 promoted of 48' "$build/bench/aa_rules" sane.jsonl 500
{ cat sane.jsonl; echo; sessions spoilt 0 .05 .001; jq -nc 'range(48) | {void_round: .}'; } >void.jsonl
ok "spoilt rounds count for nothing" code 0 "$build/bench/aa_rules" void.jsonl 500
# Halves that favour B by 5 %, and A by 5 %: nothing on average, and a rule that believes four sessions is fooled.
{ sessions odd 0 .05 .0005 | head -n 24; sessions odd 0 -.05 .0005 | head -n 24; } >fooled.jsonl
ok "sessions that lie together raise the alarm" code 1 "$build/bench/aa_rules" fooled.jsonl 500
# Two files are one set, and packing keeps what they say.
ok "rounds of two files are apart: a void one of the second spoils none of the first" has '0 promoted of 48' \
	"$build/bench/aa_rules" sane.jsonl void.jsonl 500
{ sessions quiet 0 0 .001; sessions dosed 3 .03 .001; } | jq -c '. + {blocks: [.theta], gpu: "GPU-1", windows: 1, driver: "1"}' >raw.jsonl
ok "packing" sh -c '"$1/tests/bench/aa-pack.sh" raw.jsonl raw.jsonl >packed.jsonl' - "$root"
ok "leaves all sessions and no name of a GPU" has '192 0' jq -rs '"\(length) \(map(.gpu) | unique | .[0])"' packed.jsonl
"$build/bench/aa_rules" raw.jsonl raw.jsonl 500 >one.txt
"$build/bench/aa_rules" packed.jsonl 500 >two.txt
ok "and says the same" cmp one.txt two.txt
# What is shipped: no alarm in it, and the page is the one made from it.
for f in "$root"/tests/bench/evidence/*.aa.jsonl; do
	ok "$(basename "$f"): no false promotion" code 0 "$build/bench/aa_rules" "$f" 500
	ok "and its table is the shipped one" sh -c '"$1" "$2" | cmp - "${2%jsonl}txt"' - "$build/bench/aa_rules" "$f"
	"$build/bench/aa_page" page.html "$f"
	ok "and its page" sh -c 'cat "$1"/reports/shipped/*/aa.html | cmp - page.html' - "$root"
done
finish
