# lib.sh - what the shell tests of the proposer share: TAP, a trash directory, the test server.
#
# A test sources this with the repository's root as working directory, calls `check NAME COMMAND`
# or `same NAME WANT GOT`, and ends with `done_testing`. BUILD names the build (default .build).
# SPDX-License-Identifier: MIT

set -u
ROOT=$(pwd)
BUILD=${BUILD:-.build}
case $BUILD in /*) ;; *) BUILD=$ROOT/$BUILD ;; esac
BIN=$BUILD/bin
count=0 failed=0
unset http_proxy https_proxy HTTPS_PROXY ALL_PROXY all_proxy MAKEFLAGS OPENAI_API_KEY OPENAI_BASE_URL OPENAI_MODEL
T=$(mktemp -d "${TMPDIR:-/tmp}/touchstone.XXXXXX") || exit 1
server_pid=
cleanup() {
	[ -z "$server_pid" ] || kill "$server_pid" 2>/dev/null
	[ -n "${KEEP:-}" ] && { echo "# kept $T"; return; }
	rm -rf "$T"
}
trap cleanup EXIT
trap 'exit 1' INT TERM

report() { # ok|"not ok" NAME
	count=$((count + 1))
	echo "$1 $count - $2"
	[ "$1" = ok ] || failed=$((failed + 1))
}
check() { # NAME COMMAND...
	name=$1; shift
	if "$@" >"$T/check.out" 2>&1; then report ok "$name"; else
		report "not ok" "$name"; sed 's/^/# /' "$T/check.out"; fi
}
same() { # NAME WANT GOT
	if [ "$2" = "$3" ]; then report ok "$1"; else
		report "not ok" "$1"; printf '#   want: %s\n#   got:  %s\n' "$2" "$3"; fi
}
done_testing() {
	echo "1..$count"
	[ "$failed" = 0 ]
}

# The server is built here: it is no program of the product.
SERVER=$BUILD/test/server
build_server() {
	mkdir -p "$BUILD/test"
	if [ ! -x "$SERVER" ] || [ -n "$(find tests/server "$BUILD/lib.a" -newer "$SERVER" 2>/dev/null)" ]; then
		san=; [ -z "${SAN:-}" ] || san=-fsanitize=address,undefined
		${CC:-cc} -std=c11 -D_GNU_SOURCE -O1 -g $san -o "$SERVER.$$" tests/server/*.c "$BUILD/lib.a" \
			-lcjson -lcrypto -lseccomp -lm -ldl && mv "$SERVER.$$" "$SERVER"
	fi
}
serve() { # SCRIPT-JSON or --model: sets PORT, calls go to $T/calls
	stop_server
	rm -rf "$T/port" "$T/calls" "$T/sent"; mkdir -p "$T/sent"
	if [ "$1" = --model ]; then set -- --model; else
		printf '%s\n' "$1" >"$T/script.json"; set -- --script "$T/script.json" ${2:-}; fi
	"$SERVER" "$@" --log "$T/calls" --save "$T/sent" --port-file "$T/port" >/dev/null 2>"$T/server.err" &
	server_pid=$!
	for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
		[ -s "$T/port" ] && break; sleep 0.1
	done
	PORT=$(cat "$T/port")
}
stop_server() {
	[ -n "$server_pid" ] && { kill "$server_pid"; wait "$server_pid"; } 2>/dev/null
	server_pid=
}
calls() { if [ -f "$T/calls" ]; then wc -l <"$T/calls" | tr -d ' '; else echo 0; fi; }
field() { jq -r "$2" "$1"; }
