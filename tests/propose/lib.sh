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

# ---- a run by hand: claims, pins, a pinned spec, in $W ----
W=$T/work
sha() { sha256sum <"$1" | cut -d' ' -f1; }
# new_run SPECDIR PROPOSER N WIDTH [JQ on settings] [JQ on run.json]
new_run() {
	rm -rf "$W"; mkdir -p "$W/trials/runs/r0001/spec"
	cp -r "$ROOT/prompts" "$W/prompts"
	cp -r "$1/." "$W/trials/runs/r0001/spec/"
	head -c 32 /dev/zero >"$W/trials/runs/r0001/key"
	(cd "$W/trials/runs/r0001/spec" && find . -type f | sed 's,^\./,,' | LC_ALL=C sort | while read -r f; do
		printf '%s %s\n' "$f" "$(sha "$f")"; done) >"$T/pins"
	spec=$(jq -r .name "$1/spec.json")
	jq -n --rawfile pins "$T/pins" --arg spec "$spec" --arg proposer "$2" --argjson n "$3" --argjson width "$4" \
		--arg tool "$(sha "$BIN/propose")" --arg specsha "$(sha "$1/spec.json")" '
		def id: tostring | if length < 4 then "0000"[0:4-length] + . else . end;
		{schema:"touchstone/run/1", run:"r0001", started:"2026-01-01T00:00:00Z",
		 settings:({spec:$spec,n:$n,device:"'"${ON:-emu}"'",proposer:$proposer,width:$width,seed:1,allow_weak:false} | '"${5:-.}"'),
		 first_trial:"0001", trials:[range(1;$n+1)|id], key_sha256:("0"*64), spec_sha256:$specsha,
		 pins:{spec:($pins|split("\n")|map(select(.!="")|split(" ")|{key:.[0],value:.[1]})|from_entries),
		       tools:{propose:$tool}}, champion:null, state_from:null} | '"${6:-.}" >"$W/trials/runs/r0001/run.json"
	i=1
	while [ "$i" -le "$3" ]; do
		id=$(printf %04d "$i"); mkdir -p "$W/trials/$id"
		jq -n --arg id "$id" --argjson i $((i - 1)) --argjson w "$4" --arg spec "$spec" \
			--slurpfile run "$W/trials/runs/r0001/run.json" '
			def at: if . < 0 then null else $run[0].trials[.] end;
			{schema:"touchstone/trial/1", trial:$id, run:"r0001", spec:$spec, device:"'"${ON:-emu}"'", index:$i,
			 sees:(($i-$w)|at), timed_after:(($i-1)|at), previous:(($i-1)|at), origin:$run[0].origin}' \
			>"$W/trials/$id/trial.json"
		i=$((i + 1))
	done
}
propose() { # ID: sets CODE; the program's words in $T/out
	(cd "$W" && "$BIN/propose" "trials/$1/a0/propose.json") >"$T/out" 2>&1; CODE=$?
}
verdict() { jq -r '.verdict + " " + .reason.code' "$W/trials/$1/a0/propose.json" 2>/dev/null || echo none; }
# close_trial ID VERDICT CODE MESSAGE RECENT-JSON CHAMPION-JSON
close_trial() {
	jq -n --arg id "$1" --arg v "$2" --arg c "$3" --arg m "$4" --argjson recent "$5" --argjson champion "${6:-null}" \
		--slurpfile p "$W/trials/$1/a0/propose.json" '
		{schema:"touchstone/verdict/1", run:"r0001", stage:"promote", trial:$id, verdict:$v, status:"clean",
		 reason:{code:$c,message:$m}, inputs:{}, outputs:{}, device:{}, proposer:null, simulated:false,
		 emulated:true, started:"x", elapsed_s:0, tool:{name:"promote",sha256:"",version:""}, isolation:[],
		 data:{kept:($v=="pass"), item:$p[0].data.item, hypothesis:$p[0].data.hypothesis, ratio:0.9,
		       after:{champion:$champion, recent:$recent, closed:($recent|length), charged:1,
			      reasons:{($c):($recent|length)}, best_ratio:null}}}' >"$W/trials/$1/promote.json"
	c=$(jq -r .data.candidate_sha256 "$W/trials/$1/a0/propose.json")
	printf '%s\t%s\temu\t%s\t%s\t%s\n' "$1" "$(jq -r .spec "$W/trials/$1/trial.json")" "$c" "$2" "$3" \
		>>"$W/trials/index.tsv"
}
