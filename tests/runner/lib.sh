# lib.sh - what the tests of runners share.
#
# SPDX-License-Identifier: MIT
. "$(dirname "$0")/../lib.sh"

# What two runs of the same settings must agree on, wherever their steps were done.
outcome() {
	for promote in trials/[0-9]*/promote.json; do
		jq -c '[.trial, .verdict, .reason.code, .data.candidate_sha256, .data.closed_by]' "$promote"
	done
}
verdicts() { # with every step's verdict
	for id in trials/[0-9]*; do
		for step in a0/guard a0/unittest a1/propose tune judge bench confirm promote; do
			jq -r --arg s "$step" '[.trial, $s, .verdict, .reason.code] | @tsv' "$id/$step.json"
		done
	done
}
leftovers() { find trials -name '*.tmp.*' -o -path 'trials/.far/*' -o -name 'keys.*'; }

# A tree beside the first, for the far side: the same programs, another record.
second() { # second NAME
	mkdir -p "$work/$1"
	(cd "$work/$1" && for part in Makefile tools stages specs prompts; do ln -s "$root/$part" "$part"; done &&
		ln -s "$build" .build)
}
