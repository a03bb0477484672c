# lib.sh - what the tests of runners share.
#
# SPDX-License-Identifier: MIT
. "$(dirname "$0")/../lib.sh"

verdicts() { # of every step, in order of names
	jq -r '[input_filename, .verdict, .reason.code] | @tsv' trials/[0-9]*/a?/[gpu][unr][aio]*.json trials/[0-9]*/[tbjcp]*.json |
		grep -v -e proposal.json -e prereg
}
leftovers() { find trials -name '*.tmp.*' -o -path 'trials/.far/*' -o -name 'keys.*'; }

# A tree beside the first, for the far side: the same programs, another record.
second() { # second NAME
	mkdir -p "$work/$1"
	(cd "$work/$1" && for part in Makefile tools stages specs prompts; do ln -s "$root/$part" "$part"; done &&
		ln -s "$build" .build)
}
