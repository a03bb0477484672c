#!/bin/sh
# The judge's self-test passes where nothing is wrong, in time; its record says what was tried.
# SPDX-License-Identifier: MIT
. "$(dirname "$0")/../cuda/lib.sh"
real_tree

# tried DEVICE: the record of one more self-test into $work/r
tried() { rm -f "$work/r"; "$bin/selftest" --DEVICE="$1" --out="$work/r"; }
field() { jq -r "$1" "$work/r"; }
# seconds of processor time of what it and its children did
cpu() {
	sh -c '"$0" "$@" >/dev/null; times' "$@" | awk 'NR == 2 { gsub(/[ms]/, " "); print $1 * 60 + $2 + $3 * 60 + $4 }'
}
under() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a != "" && a < b) }' || { echo "$1 s, not below $2"; return 1; }; }
# every rule that the closed list of reasons has for comparisons and checks
rules="element rel_l2 row error_ratio bias exact nan nonfinite unwritten index ties topk order distribution guard_write
	guard_read input_write late_write"

record() {
	ok "$1: passes" tried "$1"
	ok "$1: says nothing where nothing is wrong" same "$("$bin/selftest" --DEVICE="$1" --out="$work/r")" ""
	ok "$1: the record says so" same "$(field '.verdict, .failed')" "$(printf 'pass\n0')"
	for rule in $rules; do
		ok "$1: judge.$rule has a specimen" same "$(field ".rules[\"judge.$rule\"] > 0")" true
	done
	ok "$1: floating point, honest outputs, fresh inputs, poison, shapes" same "$(field '.rules |
		[.ieee, .honest, .["fresh.inputs"], .["poison.outputs"], .["shapes.held_out"]] | all(. > 0)')" true
	ok "$1: asked by somebody it faults, too" has "writes an input: refused, judge.fault" "$bin/selftest" --DEVICE="$1"
	ok "$1: the record names the programs" same "$(field '.tools.judge, .tools.checker | length')" "$(printf '64\n64')"
	ok "$1: under 2 s of a processor" under "$(cpu "$bin/selftest" --DEVICE="$1")" 2
}

record emu
ok "nothing is judged on sim" code 2 "$bin/selftest" --DEVICE=sim
ok "a device that is not here" code 4 "$bin/selftest" --DEVICE=nvidia-none
ok "in words, for people" has "specimens of" "$bin/selftest" --DEVICE=emu

if [ -f "$fake/libcuda.so.1" ] && [ "${build%-san}" = "$build" ] && ls /usr/local/cuda/lib64/libnvrtc.so.1? >/dev/null 2>&1; then
	fake_gpu
	record cuda
else
	echo "ok - # SKIP the fake GPU and NVRTC are not both here"
fi
finish
