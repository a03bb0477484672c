#!/bin/sh
# The decision rule on recorded GPU noise, small: no false promotion, and winners of 3 % found (make bench-rule has
# the large one).
. "$(dirname "$0")/../lib.sh"
build_rule() { (cd "$root" && make -s "${BUILD:-.build}/bench/rule"); }
ok "rule builds" build_rule
ok "every bound holds in 60 trials a cell" has 'all bounds hold' "$build/bench/rule" 60 64
finish
