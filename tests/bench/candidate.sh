#!/bin/sh
# candidate.sh [REPEATS] - what a candidate costs, from kernel text to verdict, stage by stage.
#
# A run on this GPU (or with FAKE=1 on the fake one, whose times mean nothing) over candidates of known fate, the
# texts coming from a scripted model: wrong in one element; twice as slow; equal to the champion; 3 % faster. The
# first trial of a run pays for the A/A gate and stands alone. The problem is tests/bench/kernels/stream at 128 and
# 64 MiB; emulated unit tests are on.
#
# wall        from the start of propose to the end of promote, by the verdicts' own clocks: all starts included
# rest        wall without guard (rules, compiler) and unittest
# lane        seconds in which the GPU's lane was held
# between     wall less all stages: make, wrappers, the record
#
# OUT=DIR keeps candidate.jsonl (a line a trial) and candidate.txt there. Beside it, where python3 has torch:
# candidate_torch.py, the same kernel in a load_inline harness.
#
# SPDX-License-Identifier: MIT
. "$(dirname "$0")/../cuda/lib.sh"
need_nvrtc
repeats=${1:-3}
[ "${FAKE:-}" ] && fake_gpu
(cd "$root" && BUILD=$build sh -c '. tests/propose/lib.sh; build_server') || { echo "no test server"; exit 1; }

# stream DIR D VARIANT [wrong]: D more tiles of 10,000, done twice. Other text for another VARIANT.
stream() {
	mkdir -p "$1"
	{
		echo "#define VARIANT $3"
		sed "s|((float4 \*)y)\[at\] = v;|${4:+if (at == 4096 + VARIANT) v.x += 1.0f;\n\t}((float4 *)y)[at] = v;|" \
			"$root/tests/bench/kernels/stream/baseline/kernel.cu"
	} >"$1/kernel.cu"
	jq --arg grid "N / 1024 * $((10000 + $2)) / 10000" 'del(.tunables) | .launches[0].grid = [$grid]' \
		"$root/tests/bench/kernels/stream/baseline/plan.json" >"$1/plan.json"
}

# one KIND K: the candidate in $work/c. Champion before winner K of R: 3 % to the power R - K + 1 more work.
dose() { awk -v n=$((repeats - $1)) 'BEGIN { printf "%d", 10000 * (1.03 ^ n - 1) + 0.5 }'; }
one() {
	if [ "${FAKE:-}" ]; then
		us=$((300 - ($2 - 1) * 20))
		case $1 in
		wrong) fixed "$work/c" add_wrong $((50 + $2)) ;;
		equal) fixed "$work/c" add_good $us; echo "#define VARIANT $2" >>"$work/c/kernel.cu" ;;
		winner) fixed "$work/c" add_good $((us - 20)) ;;
		*) fixed "$work/c" add_good $((600 + $2)) ;;
		esac
		return
	fi
	case $1 in
	wrong) stream "$work/c" "$(dose $(($2 - 1)))" "$2" wrong ;;
	equal) stream "$work/c" "$(dose $(($2 - 1)))" "$2" ;;
	winner) stream "$work/c" "$(dose "$2")" 0 ;;
	*) stream "$work/c" $((10000 + 100 * $2)) 0 ;;
	esac
}

fake_spec
spec=fake_add
if [ ! "${FAKE:-}" ]; then
	spec=dose_stream
	mkdir specs/$spec
	cp "$root"/tests/bench/kernels/stream/reference.* specs/$spec/
	jq '.workloads.public = [{name: "large", axes: {N: 33554432}, weight: 1, emu: {N: 65536}},
		{name: "medium", axes: {N: 16777216}, weight: 1, emu: {N: 16384}}]' \
		"$root/tests/bench/kernels/stream/spec.json" >specs/$spec/spec.json
	stream specs/$spec/baseline "$(dose 0)" 0
fi

echo "first 0" >"$work/want"
k=1
while [ $k -le "$repeats" ]; do
	for kind in wrong slow equal winner; do echo "$kind $k"; done >>"$work/want"
	k=$((k + 1))
done
while read -r kind k; do
	one "$kind" "$k"
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

from=$(date +%s.%N)
"$bin/iterate" --SPEC=$spec --DEVICE="${DEVICE:-cuda}" --PROPOSER=openai --REPAIRS=0 --N="$(wc -l <"$work/want")" --WIDTH=1 \
	>"$work/run.out" 2>&1 || { tail -n 20 "$work/run.out"; exit 1; }
whole=$(date +%s.%N)

n=0
while read -r kind k; do
	n=$((n + 1))
	dir=trials/$(printf %04d $n)
	jq -s -c --arg kind "$kind" --argjson k "$k" '
		def at: (.[:19] + "Z" | fromdate) + (.[19:23] | tonumber);
		(map(select(.verdict != "skip" or .stage == "promote"))) as $v |
		($v | map(.started | at) | min) as $from | ($v | map((.started | at) + .elapsed_s) | max) as $to |
		($v | map({key: .stage, value: .elapsed_s}) | from_entries) as $stages |
		{kind: $kind, k: $k, trial: .[0].trial, wall: ($to - $from), stages: $stages,
		 between: ($to - $from - ($stages | add)),
		 rest: ($to - $from - ($stages.guard // 0) - ($stages.unittest // 0)),
		 lane: ($v | map(.data.lane // empty | select(.mode == "exclusive") | (.to_us - .from_us) / 1e6) | add // 0),
		 code: ($v | map(select(.stage == "promote"))[0].reason.code),
		 sessions: ($v | map((.data.decide.sessions // []) | if type == "array" then length else . end) | add)}
	' $(for s in a0/propose a0/guard a0/unittest tune judge bench confirm promote; do
		[ -f $dir/$s.json ] && echo $dir/$s.json; done)
done <"$work/want" >"$work/candidate.jsonl"

{
	jq -r -n --argjson from "$from" --argjson to "$whole" '"the run: \(($to - $from) * 10 | round / 10) s"'
	jq -r -s '
		def med: sort | if length == 0 then 0 else (.[(length - 1) / 2 | floor] + .[length / 2 | floor]) / 2 end;
		def pad(n): tostring | (n - length) as $p | (if $p > 0 then " " * $p else "" end) + .;
		def s2: (. * 100 | round / 100);
		["propose", "guard", "unittest", "tune", "judge", "bench", "confirm", "promote"] as $names |
		"seconds, medians; wall with least and most",
		("kind" | pad(7)) + ("n" | pad(3)) + (["wall", "least", "most", "rest", "lane"] | map(pad(7)) | add) +
			($names + ["between"] | map(pad(9)) | add) + "  code",
		(group_by(.kind) | sort_by(.[0].trial) | .[] |
			(.[0].kind | pad(7)) + (length | pad(3)) +
			([(map(.wall) | med), (map(.wall) | min), (map(.wall) | max), (map(.rest) | med), (map(.lane) | med)] |
				map(s2 | pad(7)) | add) +
			(. as $all | $names | map(. as $s | $all | map(.stages[$s] // 0) | med | s2 | pad(9)) | add) +
			(map(.between) | med | s2 | pad(9)) + "  " + (map(.code) | unique | join(" ")))
	' "$work/candidate.jsonl"
} >"$work/candidate.txt"
cat "$work/candidate.txt"
[ "${OUT:-}" ] && { mkdir -p "$OUT"; cp "$work/candidate.txt" "$work/candidate.jsonl" "$work/run.out" "$OUT"; }
[ "${FAKE:-}" ] && exit 0
if python3 -c 'import torch; torch.cuda.init()' 2>/dev/null; then
	python3 "$root/tests/bench/candidate_torch.py" "$root/tests/bench/kernels/stream/baseline/kernel.cu" |
		tee ${OUT:+"$OUT/candidate_torch.txt"}
else
	echo "no torch with a GPU: nothing to compare with"
fi
