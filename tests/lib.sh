# lib.sh - what the shell tests share. Source it first: . "$(dirname "$0")/../lib.sh"
#
# TAP: every check is one call of `ok`, which runs a command and prints "ok N - text" or
# "not ok N - text"; `finish` prints the plan. A test works in a folder of its own ($work), which is
# removed at the end (KEEP=1 keeps it), and never writes outside it.
#
# SPDX-License-Identifier: MIT

root=$(cd "$(dirname "$0")/../.." && pwd)
build=${BUILD:-.build}
case $build in /*) ;; *) build=$root/$build ;; esac
# In memory where that is possible: the tests sync thousands of small files.
if [ -z "${TMPDIR:-}" ] && [ -w /dev/shm ]; then
	work=$(mktemp -d /dev/shm/touchstone.XXXXXX)
	if ! cp /bin/true "$work/true" || ! "$work/true"; then # mounted noexec, or full
		rm -rf "$work"
		work=$(mktemp -d /tmp/touchstone.XXXXXX)
	fi
else
	work=$(mktemp -d "${TMPDIR:-/tmp}/touchstone.XXXXXX")
fi
count=0
bad=0
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES
LC_ALL=C
export LC_ALL

cleanup() {
	[ "${KEEP:-}" ] && echo "# kept $work" && return
	rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

# ok TEXT COMMAND...: one check. Its output goes to $work/out and is shown when it fails.
ok() {
	ok_text=$1
	shift
	count=$((count + 1))
	if "$@" >"$work/.out" 2>&1; then
		echo "ok $count - $ok_text"
	else
		bad=$((bad + 1))
		echo "not ok $count - $ok_text"
		sed 's/^/# /' "$work/.out" | head -n 30
	fi
}

# code N COMMAND...: true when COMMAND ends with exit code N.
code() {
	code_want=$1
	shift
	code_got=0
	"$@" || code_got=$?
	[ "$code_got" = "$code_want" ] || { echo "exit $code_got, not $code_want"; return 1; }
}

# has TEXT COMMAND...: true when what COMMAND prints contains TEXT; its exit code is not looked at.
has() {
	has_want=$1
	shift
	has_got=$("$@" 2>&1) || true
	case $has_got in
	*"$has_want"*) return 0 ;;
	esac
	echo "no '$has_want' in:"
	echo "$has_got"
	return 1
}

not() { ! "$@"; }
same() { [ "$1" = "$2" ] || { echo "'$1' is not '$2'"; return 1; }; }

skip_all() {
	echo "1..0 # SKIP $1"
	exit 0
}

finish() {
	echo "1..$count"
	[ "$bad" = 0 ]
}

# A tree with the real programs and problems: `make iterate` works in it and builds nothing.
real_tree() {
	mkdir -p "$work/tree"
	cd "$work/tree" || exit 1
	for part in Makefile tools stages specs prompts; do
		ln -s "$root/$part" "$part"
	done
	mkdir tests
	ln -s "$build" "$(basename "$build")"
	case $build in *-san) SAN=1; export SAN ;; esac
	bin=$build/bin
	TS_BIN=$bin
	export TS_BIN
}

# A tree with fake stages (tests/fault/fake_stage.c) between the real wrapper, promote and iterate.
fake_tree() {
	mkdir -p "$work/tree/bin" "$work/tree/specs" "$work/tree/tools"
	cd "$work/tree" || exit 1
	ln -s "$root/tools/make" tools/make
	cp -r "$root/specs/vector_add" specs/
	bin=$work/tree/bin
	for stage in propose guard unittest tune judge bench; do
		cp "$build/test/fake/stage" "$bin/$stage"
	done
	cp "$build/bin/run" "$build/bin/iterate" "$build/bin/promote" "$build/bin/status" "$bin"
	printf '#!/bin/sh\nexit 0\n' >"$bin/render"
	chmod +x "$bin/render"
	TS_BIN=$bin
	FAKE_CALLS=$work/calls
	TS_RETRIES=0
	export TS_BIN FAKE_CALLS TS_RETRIES
	: >"$FAKE_CALLS"
}

iterate() { "$bin/iterate" --DEVICE=sim --PROPOSER=sweep "$@"; }
calls() { grep -c -x "$1" "$FAKE_CALLS" || true; }

# What a run came to, without times, hashes of times and places: equal for equal runs.
essence() {
	for promote in trials/[0-9]*/promote.json; do
		jq -c '[.trial, .verdict, .reason.code, .data.candidate_sha256, .data.ratio,
			.data.after]' "$promote"
	done
	cat trials/index.tsv
	jq -c '[.trial, .verdict, .code, .kept]' trials/log.jsonl
	readlink champion/vector_add/sim || echo none
	git --git-dir=trials/history.git for-each-ref --format='%(refname)'
}
