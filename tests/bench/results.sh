#!/bin/sh
# results.sh - the table of the README: every shipped problem, ten trials of plain search each.
#
# Works in a scratch clone of HEAD, so nothing here is touched. Prints one Markdown row a problem:
# ratio of the last champion to the baseline with its 95 % interval, trials kept, wall time. The rows
# are emulated figures of the machine named below them.
#
# usage: tests/bench/results.sh [LOG]    LOG: where the closed trials' lines go (raw figures)
# N=10 trials a problem, SPECS="..." which problems
set -eu
top=$(cd "$(dirname "$0")/../.." && pwd)
log=${1:-}
work=$(mktemp -d "${TMPDIR:-/tmp}/results.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
unset MAKEFLAGS MFLAGS MAKELEVEL OPENAI_API_KEY OPENAI_BASE_URL
git clone -q "$top" "$work/t"
cd "$work/t"
make -j2 all >/dev/null
echo "| problem | champion against the baseline | kept | wall |"
echo "| --- | --- | --- | --- |"
for spec in ${SPECS:-vector_add silu_mul rmsnorm softmax transpose matmul matmul_bf16}; do
	start=$(date +%s)
	make iterate SPEC="$spec" N="${N:-10}" DEVICE=emu PROPOSER=sweep >"$work/out" 2>&1 || {
		tail -n 5 "$work/out" >&2
		exit 70
	}
	jq -rs --arg spec "$spec" --arg wall "$(($(date +%s) - start))" '
		map(select(.spec == $spec)) | . as $all | map(select(.kept)) | last as $c |
		"| `\($spec)` | " + (if $c then
			"**\($c.ratio_baseline * 100 | round / 100)x** (\($c.ratio_baseline_lo95 * 100 | round / 100) to \($c.ratio_baseline_hi95 * 100 | round / 100)), trial \($c.trial)"
		else "1 (nothing kept)" end) + " | \(length) of \($all | length) | \($wall) s |"' trials/log.jsonl
done
echo
echo "# $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(nproc) cores, $(uname -sr)," \
	"load $(cut -d' ' -f1 /proc/loadavg), $(g++ --version | head -n 1), commit $(git rev-parse --short HEAD), $(date -u +%F)"
# Without what was changed: the configurations found stay out of the repository, so that a later run finds
# its own.
[ -z "$log" ] || jq -c "del(.item, .hypothesis)" trials/log.jsonl >"$log"
