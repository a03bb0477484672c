#!/bin/sh
# lane.sh - do slow proposals keep the timing lane busy, and does -j change a verdict?
#
# usage: tests/bench/lane.sh [N]      from the repository root, after `make`
# A scripted proposer that takes 2 s, simulated timings that hold the lane for 1 s, WIDTH=4. Two
# runs of the same N trials (20 by default) in scratch copies, with -j8 and with -j1. The share is
# computed from the `lane` members of the records: time held by bench and confirm over the time
# from the first to the last of them. Ends with 1 below 80 % or when a verdict differs.
# Makes its own scratch folder and removes it. Takes about a minute and a half at N=20.
set -eu
: "${BUILD:=.build}"
n=${1:-20}
if [ -z "${TMPDIR:-}" ] && [ -w /dev/shm ]; then TMPDIR=/dev/shm; fi
scratch=$(mktemp -d "${TMPDIR:-/tmp}/touchstone-lane.XXXXXX")
trap 'rm -rf "$scratch"' EXIT INT TERM

# The proposer: tunables out of the prompt's hash, so that equal prompts get equal replies.
reply=$scratch/reply
{
	cat <<'HEAD'
#!/bin/sh
sleep 2
# Fences carry a nonce of the run.
sum=$(sed 's/ [0-9a-f]\{16\}$//' | sha256sum | cut -c1-6)
x=$((0x$sum))
pick() { shift $((x % $#)); x=$((x / 5)); echo "$1"; }
block=$(pick 64 128 256 512 1024); items=$(pick 1 2 4 8); vec=$(pick 1 2 4)
cat <<TEXT
{"item": "tune $sum", "hypothesis": "a scripted test", "expected_effect": "none", "files": ["kernel.cu", "plan.json"], "risk": "none", "reasoning": "none"}

\`\`\`cuda kernel.cu
// $sum
TEXT
cat <<'KERNEL'
HEAD
	cat specs/vector_add/baseline/kernel.cu
	printf '%s\n' KERNEL 'printf "%s\n\n" "\`\`\`"' 'printf "%s\n" "\`\`\`json plan.json"' 'sed "s/\"BLOCK\"\(.*\)\"value\": [0-9]*/\"BLOCK\"\1\"value\": $block/; s/\"ITEMS\"\(.*\)\"value\": [0-9]*/\"ITEMS\"\1\"value\": $items/; s/\"VEC\"\(.*\)\"value\": [0-9]*/\"VEC\"\1\"value\": $vec/" <<'"'PLAN'"
	cat specs/vector_add/baseline/plan.json
	# shellcheck disable=SC2016 # literal backticks of the fence
	printf '%s\n' PLAN 'printf "%s\n" "\`\`\`"'
} >"$reply"
chmod +x "$reply"

run() { # folder, -j
	mkdir -p "$1/trials" "$1/champion" "$1/reports" "$1/.build"
	cp -Rp Makefile stages tools specs prompts "$1/"
	cp -Rp "$BUILD/bin" "$1/.build/bin"
	from=$(date +%s)
	(cd "$1" && MAKE=make MAKEFLAGS="-j$2" .build/bin/iterate --SPEC=vector_add \
		--DEVICE=sim --PROPOSER=command --COMMAND="$reply" --WIDTH=4 --N="$n" \
		--SIM_SECONDS="${HOLD:-1}") >"$1.log" 2>&1 || { tail -5 "$1.log" >&2; exit 1; }
	printf -- '-j%s: %s trials in %s s; ' "$2" "$n" "$(($(date +%s) - from))"
	cat "$1"/trials/[0-9]*/bench.json "$1"/trials/[0-9]*/confirm.json |
		jq -rs '[.[] | .data.lane? | select(. and .mode == "exclusive")] | sort_by(.from_us) |
			(map(.to_us - .from_us) | add) as $held |
			"\(length) holds of the lane, busy \(100 * $held / ((map(.to_us) | max) - .[0].from_us) | floor) %"'
	(cd "$1" && for t in trials/[0-9]*; do
		jq -r '[.trial, .verdict, .reason.code, .data.ratio] | @tsv' "$t/promote.json"
	done) >"$1.verdicts"
}

run "$scratch/j8" 8 >"$scratch/busy"
cat "$scratch/busy"
run "$scratch/j1" 1
cut -f2,3 "$scratch/j8.verdicts" | sort | uniq -c
bad=0
if ! cmp -s "$scratch/j8.verdicts" "$scratch/j1.verdicts"; then
	echo "verdicts differ between -j8 and -j1:"
	diff "$scratch/j8.verdicts" "$scratch/j1.verdicts" || true
	bad=1
fi
share=$(sed -n 's/.*busy \([0-9]*\) %.*/\1/p' "$scratch/busy")
[ "${share:-0}" -ge 80 ] || { echo "the lane is busy less than 80 %"; bad=1; }
[ "$bad" = 0 ] && echo "verdicts are equal"
exit "$bad"
