#!/bin/sh
# t4-secrets.sh - no key in anything that a run writes, in argv or environment of any process, or in make's database.
#
# Whole runs on `sim` against the scripted server. The key is in a 0600 file outside the repository, then in the
# environment. The server echoes it: in an error page, in a reply's words and in a reply's code. All of /proc is
# read over and over while a run is on (t3-programs.sh sees every execve of another).
#
# SPDX-License-Identifier: MIT
cd "$(dirname "$0")/../.." || exit 1
. tests/propose/lib.sh
build_server || { echo "Bail out! no test server"; exit 1; }
for p in iterate run guard judge bench promote; do
	[ -x "$BIN/$p" ] || { echo "1..0 # SKIP $BIN/$p is not built"; exit 0; }
done
case $BUILD in *-san) SAN=1; export SAN ;; esac

KEY=sk-secret-$$-0123456789abcdef
umask 077
printf '%s\n' "$KEY" >"$T/key" # what grep looks for, too: the key is in no argv of ours
umask 022
# Other faces of it: in base64 and URL-escaped nobody would see it.
printf '%s' "$KEY" | base64 | cut -c1-20 >"$T/faces"
cat "$T/key" >>"$T/faces"

tree() {
	rm -rf "$W"; mkdir -p "$W"
	for part in Makefile tools stages specs tests; do ln -s "$ROOT/$part" "$W/$part"; done
	cp -r "$ROOT/prompts" "$W/prompts"
	ln -s "$BUILD" "$W/$(basename "$BUILD")"
	cd "$W" || exit 1
}
# Every process, as often as it goes; hits are kept with who it was.
sample() {
	while [ ! -e "$T/stop" ]; do
		grep -l -a -F -f "$T/key" /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null | while read -r file; do
			pid=${file#/proc/}
			name=$(cat "/proc/${pid%%/*}/comm" 2>/dev/null)
			# it may have become another program between the two looks: then it has that one's name
			grep -q -a -F -f "$T/key" "$file" 2>/dev/null && echo "${file##*/} $name"
		done >>"$T/hits"
		echo x >>"$T/rounds"
	done
}
watched() { # watched COMMAND...
	rm -f "$T/stop" "$T/hits" "$T/rounds"
	: >"$T/hits"
	sample &
	sampler=$!
	"$@" >"$T/out" 2>&1
	CODE=$?
	: >"$T/stop"
	wait $sampler
}
# Files of this run with the key, the objects of its history among them.
found() {
	grep -r -l -a -F -f "$T/faces" trials reports champion prompts "$T/out" 2>/dev/null
	[ -d trials/history.git ] && git --git-dir=trials/history.git cat-file --batch-all-objects --batch 2>/dev/null |
		grep -c -a -F -f "$T/faces" | grep -v '^0$'
	for d in "$BUILD/cache" "$BUILD/test/log"; do
		[ -d "$d" ] && grep -r -l -a -F -f "$T/faces" "$d"
	done
	true
}
closed() { ls trials/*/promote.json 2>/dev/null | wc -l | tr -d ' '; }
script="{\"replies\":[{\"status\":503,\"body\":\"<html>bad key $KEY, try later</html>\"},
	{\"text\":\"Your key is $KEY.\"},
	{\"text\":\"\`\`\`cuda kernel.cu\\n// $KEY\\n\`\`\`\"},
	{\"model\":true}]}"

# ---- the key in a file ----
serve "$script"
tree
jq -n --arg url "http://127.0.0.1:$PORT/v1" --arg file "$T/key" \
	'{schema:"touchstone/profile/1", base_url:$url, model:"m", key_file:$file, limits:{backoff_ms:10}}' >prompts/profiles/mine.json
watched make iterate DEVICE=sim SPEC=matmul PROFILE=mine N=4
same "a run with the key in a file" "0 4" "$CODE $(closed)"
check "it was used" grep -q -F -f "$T/key" "$T/calls"
same "the error page, the words and the code came" "4" "$(ls trials/*/a0/reply.json | wc -l | tr -d ' ')"
check "the echo is blanked" grep -q 'Your key is \*\*\*\*' trials/*/a0/reply.json
same "it is in no file of the run, nor in its history, nor in what was printed" "" "$(found)"
cp "$T/key" trials/planted
same "a planted one would be found" trials/planted "$(found)"
rm trials/planted
check "/proc was looked at often" test "$(wc -l <"$T/rounds")" -ge 5
same "no process had it in argv or environment" "" "$(sort -u "$T/hits")"
make -pn iterate DEVICE=sim SPEC=matmul PROFILE=mine N=1 >"$T/database" 2>/dev/null
check "make's database was printed" grep -q '^SHELL' "$T/database"
check "and does not have it" sh -c "! grep -q -a -F -f '$T/key' '$T/database'"
make report >"$T/out" 2>&1
same "the report does not have it" "" "$(found)"
cp "$T/key" mine.key
jq '.key_file = "mine.key"' prompts/profiles/mine.json >"$T/p" && cp "$T/p" prompts/profiles/inside.json
make iterate DEVICE=sim SPEC=matmul PROFILE=inside N=1 NEW=1 >"$T/out" 2>&1
check "a key file in the repository is refused" grep -q "inside the repository" "$T/out"
rm mine.key
cd "$ROOT" || exit 1

# ---- in the environment ----
serve "$script"
tree
jq '.limits.backoff_ms = 10' prompts/profiles/openai.json >"$T/p" && cp "$T/p" prompts/profiles/openai.json
with_key() { OPENAI_BASE_URL=http://127.0.0.1:$PORT/v1 OPENAI_API_KEY=$KEY OPENAI_MODEL=m HOME=$T "$@"; }
watched with_key make iterate DEVICE=sim SPEC=matmul N=4
same "a run with the key in the environment" "0 4" "$CODE $(closed)"
same "it is in no file of the run, nor in its history, nor in what was printed" "" "$(found)"
check "the banner says who can see it" grep -q 'make and its children can see it' "$T/out"
check "the look at /proc sees it where it is" grep -q 'environ make' "$T/hits"
same "no process had it in argv" "" "$(grep cmdline "$T/hits" | sort -u)"
# root sees even those that others cannot; a process between fork and exec is still its parent
same "in the environment: those on its way to the client" "" \
	"$(grep environ "$T/hits" | sed 's/environ //' | sort -u | grep -vxE 'make|sh|iterate|run|propose|client|')"
stop_server
cd "$ROOT" || exit 1
done_testing
