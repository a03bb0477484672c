#!/bin/sh
# t1-compile.sh - every start/ kernel compiles for sm_90a with real NVRTC; nothing spills in the default configuration.
#
# The default configuration of each plan, then those listed in tests/starts/configs (SPEC NAME=VALUE...: over the
# defaults; these may spill, they must compile). What ptxas says goes to $BUILD/starts/. Skipped without NVRTC.
#
# SPDX-License-Identifier: MIT
cd "$(dirname "$0")/../.." || exit 1
out=${BUILD:-.build}/starts
mkdir -p "$out"
cc -std=c11 -O1 -o "$out/nvrtc" tests/starts/nvrtc.c -ldl || { echo "Bail out! no C compiler"; exit 1; }
LD_LIBRARY_PATH=/usr/local/cuda/lib64${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH
"$out/nvrtc" >/dev/null 2>&1
[ $? = 4 ] && { echo "1..0 # skip no NVRTC"; exit 0; }
n=0
bad=0

# macros SPEC [NAME=VALUE...]: the -D of a configuration, and those of constant axes
macros() {
	spec=$1
	shift
	jq -r '.tunables // {} | to_entries[] | "\(.key)=\(.value.value)"' "specs/$spec/start/plan.json" |
		while IFS='=' read -r name value; do
			for over; do
				[ "${over%%=*}" = "$name" ] && value=${over#*=}
			done
			printf -- '-D%s=%s ' "$name" "$value"
		done
	jq -r '.axes | to_entries[] | select(.value.type == "const") | "-DAXIS_\(.key)=\(.value.value)"' \
		"specs/$spec/spec.json" | tr '\n' ' '
	jq -r 'if .compile.fast_math then "--use_fast_math" else "" end' "specs/$spec/start/plan.json"
}

# compile SPILLS SPEC [NAME=VALUE...]: SPILLS 0: none allowed
compile() {
	spills=$1
	shift
	n=$((n + 1))
	log=$out/$(echo "$*" | tr ' =' '-_').log
	# shellcheck disable=SC2046
	if ! "$out/nvrtc" "specs/$1/start/kernel.cu" "$out/cubin" $(macros "$@") >"$log" 2>&1; then
		echo "not ok $n - $*"
		sed 's/^/# /' "$log"
		bad=$((bad + 1))
		return
	fi
	worst=$(sed -n 's/.* \([0-9]*\) bytes spill stores.*/\1/p' "$log" | sort -n | tail -1)
	regs=$(sed -n 's/.*Used \([0-9]*\) registers.*/\1/p' "$log" | paste -sd' ')
	if { [ "$spills" = 0 ] && [ "${worst:-1}" != 0 ]; } || grep -q 'serialized' "$log"; then
		echo "not ok $n - $*: registers $regs, $worst bytes spilled"
		sed 's/^/# /' "$log"
		bad=$((bad + 1))
	else
		echo "ok $n - $*: registers $regs, $worst bytes spilled"
	fi
}

for dir in specs/*/start; do
	spec=${dir#specs/}
	compile 0 "${spec%/start}"
done
while read -r line <&3; do
	# shellcheck disable=SC2086
	case $line in '' | '#'*) ;; *) compile any $line ;; esac
done 3<tests/starts/configs
echo "1..$n"
[ $bad -eq 0 ]
