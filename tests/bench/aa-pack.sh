#!/bin/sh
# aa-pack.sh FILE... - sessions that aa.c recorded, as they are shipped: one set, on stdout.
#
# Rounds of each file become its own (8192 apart, as aa_cells.h reads several files); a GPU is its number in the set;
# block sums to seven digits, which is below a tick; the first block's ticks of every tenth round stay.
#
# SPDX-License-Identifier: MIT
n=0
for f; do
	# a line that a kill cut off is none
	jq -cR --argjson shift $((n * 8192)) 'fromjson? | if .void_round then .void_round += $shift else .round += $shift end' "$f"
	n=$((n + 1))
done | jq -nc 'def short: . * 1e7 | round / 1e7; def ns: . * 10 | round / 10;
	foreach inputs as $s ([]; if $s.gpu and (index([$s.gpu]) == null) then . + [$s.gpu] else . end;
		if $s.void_round then $s else index([$s.gpu]) as $gpu | $s |
		{cell, dose, round, gpu: $gpu, driver, windows, T_ns: (.T_ns | ns), theta: (.theta | short), se: (.se | short),
		 blocks: (.blocks | map(short)), blocked: (.blocked | map_values(map_values(ns))), first: (.first | map_values(ns))} +
		(if .ticks then {ticks} else {} end) end)'
