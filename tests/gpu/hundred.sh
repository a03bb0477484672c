#!/bin/sh
# hundred.sh [N] - a run of a hundred candidates that nobody looks after, and who was blamed for what.
#
# 10 % hang, 10 % touch addresses that are not theirs, 10 % end their context otherwise (trap, misaligned access,
# wild shared address); the rest is wrong, slower, refused at the door, tried before, or right. The list and its order come
# from SEED (1), so that every trial's reason code is known before. Prints expected and got for each, then
# `N right, M wrong`; exit 0 only without a wrong one.
#
# On a GPU, or with FAKE=1 on the fake driver (tests/fake/cuda), where kinds that a host does not notice are
# left out; N then keeps the first so many. OUT=DIR keeps the table and the record's index there.
#
# SPDX-License-Identifier: MIT
. "$(dirname "$0")/../cuda/lib.sh"
need_nvrtc
most=${1:-100}
[ "${FAKE:-}" ] && fake_gpu
(cd "$root" && BUILD=$build sh -c '. tests/propose/lib.sh; build_server') || { echo "no test server"; exit 1; }
fake_spec
# On a GPU more than a granule of its memory, and no multiple of one.
[ "${FAKE:-}" ] || jq '(.workloads.public[0].axes.N, .workloads.held_out.axes.N.max) = 1000000' \
	"$root/tests/fake/cuda/fake_add/spec.json" >specs/fake_add/spec.json

# COUNT ENTRY US STEP VERDICT REASON [gpu]: US grows by STEP, so that no two are the same.
kinds() {
	cat <<-EOF
	3 add_hang 50 1 reject judge.timeout
	3 add_spin 50 1 reject judge.timeout
	2 add_lock 50 1 reject judge.timeout
	2 add_long 50 1 reject judge.timeout
	4 add_illegal 50 1 reject judge.fault
	2 add_null 0 1 reject judge.fault
	2 add_far_read 50 1 reject judge.fault
	2 add_write_input 50 1 reject judge.fault
	6 add_trap 50 1 reject judge.fault
	2 add_misaligned 50 1 reject judge.fault gpu
	2 add_wild_shared 50 1 reject judge.fault gpu
	8 add_wrong 50 1 reject judge.element
	6 add_guard 50 1 reject judge.guard_write
	6 add_unwritten 50 1 reject judge.unwritten
	5 add_nan 50 1 reject judge.nan
	5 add_minus 50 1 reject judge.element
	4 add_nothing 50 1 reject guard.entry_missing
	18 add_good 200 3 reject bench.slower
	6 add_counter 200 3 reject guard.module_state
	6 add_shared 200 3 reject bench.slower
	1 add_good 4000 1 reject bench.slower
	EOF
}

# In an order of its own; the one that is kept comes first, four that were there before last.
list() {
	kinds | awk -v seed="${SEED:-1}" -v most="$most" -v fake="${FAKE:-}" '
		function next_word() { word = (word * 1103515245 + 12345) % 2147483648; return int(word / 65536) }
		BEGIN { word = seed }
		!(fake && $7) { for (i = 0; i < $1; i++) line[n++] = $2 " " $3 + i * $4 " " $5 " " $6 }
		END {
			for (i = n - 1; i > 0; i--) {
				j = next_word() % (i + 1); t = line[i]; line[i] = line[j]; line[j] = t
			}
			most -= 5
			print "add_good 100 true promote.first"
			for (i = 0; i < n && i < most; i++) {
				print line[i]
				if (line[i] ~ /timeout/) hang = line[i]
				if (line[i] ~ /slower/) slower = line[i]
			}
			for (i = 0; i < 2 && hang; i++) { sub(/[^ ]*$/, "guard.hang", hang); print hang }
			for (i = 0; i < 2 && slower; i++) { sub(/[^ ]*$/, "guard.duplicate", slower); print slower }
		}'
}

list >"$work/want"
[ "${LIST:-}" ] && { cat "$work/want"; exit 0; }
while read -r entry us verdict code; do
	fixed "$work/c" "$entry" "$us"
	jq -n --rawfile kernel "$work/c/kernel.cu" --rawfile plan "$work/c/plan.json" \
		'{text: ("```cuda kernel.cu\n" + $kernel + "```\n\n```json plan.json\n" + $plan + "```\n")}'
done <"$work/want" | jq -s '{replies: .}' >"$work/script.json"
"$build/test/server" --script "$work/script.json" --log "$work/calls" --save "$work" --port-file "$work/port" \
	>/dev/null 2>"$work/server.err" &
server=$!
trap 'kill $server 2>/dev/null; cleanup' EXIT
for i in 1 2 3 4 5 6 7 8 9 10; do [ -s "$work/port" ] && break; sleep 0.1; done
OPENAI_BASE_URL=http://127.0.0.1:$(cat "$work/port")/v1 OPENAI_API_KEY=x OPENAI_MODEL=scripted
export OPENAI_BASE_URL OPENAI_API_KEY OPENAI_MODEL

count=$(wc -l <"$work/want")
from=$(date +%s)
"$bin/iterate" --SPEC=fake_add --DEVICE=cuda --PROPOSER=openai --REPAIRS=0 --N="$count" --WIDTH=1 --UNITTEST_DEVICE=none \
	>"$work/run.out" 2>&1
code=$?
echo "iterate ended with $code after $(($(date +%s) - from)) s"
[ "$code" = 0 ] || tail -n 20 "$work/run.out"

n=0
right=0
printf '%-5s %-16s %5s  %-25s %-25s %s\n' trial kernel us expected got ''
while read -r entry us verdict code; do
	n=$((n + 1))
	p=trials/$(printf %04d $n)/promote.json
	got=$(jq -r '"\(if .data.kept then true else .verdict end) \(.reason.code)"' "$p" 2>/dev/null)
	if [ "$got" = "$verdict $code" ]; then right=$((right + 1)) mark=; else mark='<-- WRONG'; fi
	printf '%04d  %-16s %5d  %-25s %-25s %s\n' $n "$entry" "$us" "$verdict $code" "$got" "$mark"
done <"$work/want" | tee "$work/table"
wrong=$(grep -c 'WRONG$' "$work/table")
[ "${OUT:-}" ] && { mkdir -p "$OUT"; cp "$work/table" "$OUT/hundred.txt"; cp trials/log.jsonl trials/index.tsv "$OUT"; \
	cp "$work/run.out" "$OUT/hundred.out"; }
echo "$((count - wrong)) right, $wrong wrong"
[ "$wrong" = 0 ]
