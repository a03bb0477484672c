#!/bin/sh
# t22-hundred.sh - the scripts for a real GPU, tried in small: a mixed run without anybody looking after it, and what a
# candidate costs.
#
# SPDX-License-Identifier: MIT
. "$(dirname "$0")/lib.sh"
need_plain
need_nvrtc
[ -f "$fake/libcuda.so.1" ] || skip_all "no fake driver in $fake"

FAKE=1 BUILD=$build
export FAKE BUILD
ok "twenty mixed candidates: each is blamed for what it did" has " 0 wrong" "$root/tests/gpu/hundred.sh" 20
ok "the same list each time" same "$(LIST=1 "$root/tests/gpu/hundred.sh" 100 | sha256sum)" \
	"$(LIST=1 "$root/tests/gpu/hundred.sh" 100 | sha256sum)"
ok "another seed, another order" not same "$(LIST=1 "$root/tests/gpu/hundred.sh" 100 | sha256sum)" \
	"$(SEED=2 LIST=1 "$root/tests/gpu/hundred.sh" 100 | sha256sum)"
ok "costs of four kinds of candidates" env OUT="$work/out" "$root/tests/bench/candidate.sh" 1
ok "each with its fate" same "$(jq -r 'select(.kind != "equal") | .kind + " " + .code' "$work/out/candidate.jsonl" | tr '\n' ',')" \
	"first bench.slower,wrong unittest.wrong,slow bench.slower,winner promote.first,"
finish
