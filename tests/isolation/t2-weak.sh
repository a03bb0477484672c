#!/bin/sh
# t2-weak.sh - a machine that lacks a layer: what its verdicts say, what promote refuses, what the page shows.
#
# lack.c takes layers away from a whole run of the real programs. Five short runs on the emulated device.
#
# SPDX-License-Identifier: MIT
. "$(dirname "$0")/../lib.sh"
[ "$(id -u)" = 0 ] || skip_all "not root: only root loads a filter without no_new_privs"
[ -e /usr/include/seccomp.h ] || skip_all "no libseccomp"
${CC:-cc} -D_GNU_SOURCE -std=gnu11 -O1 -Wall -Wextra -Werror "$root/tests/isolation/lack.c" -o "$work/lack" -lseccomp ||
	skip_all "lack.c does not build"
real_tree
# A problem of a few milliseconds a rep.
rm specs && mkdir specs && cp -r "$root/specs/rmsnorm" specs/

run() { # run LAYERS NAME=VALUE...
	lacking=$1
	shift
	rm -rf trials champion reports
	"$work/lack" "$lacking" make iterate SPEC=rmsnorm DEVICE=emu PROPOSER=sweep N=1 NEW=1 "$@" >"$work/log" 2>&1
	trial=$(ls -d trials/0* | tail -n 1)
}
says() { # says STEP LAYER: does this verdict claim it?
	jq -e --arg l "$2" '.isolation | any(. == $l or startswith($l + ":"))' "$trial/$1.json" >/dev/null
}
steps='a0/guard a0/unittest judge bench confirm'
none() { # none LAYER: no verdict claims it, all have verdicts
	for s in $steps; do
		[ "$(jq -r .verdict "$trial/$s.json")" = pass ] || { tail -n 20 "$work/log"; return 1; }
		! says "$s" "$1" || { echo "$s claims $1"; return 1; }
	done
}
all() { for s in $steps; do says "$s" "$1" || { echo "$s lacks $1"; return 1; }; done; }
promoted() { jq -r '.verdict + " " + .reason.code' "$trial/promote.json"; }

run seccomp
ok "no seccomp: every step runs and none claims it" none seccomp
ok "what is left is claimed" all no_new_privs
ok "promote refuses" same "invalid promote.isolation" "$(promoted)"
ok "and says what is missing and how to accept it" has "ran without seccomp; ALLOW_WEAK=1 accepts that" \
	jq -r .reason.message "$trial/promote.json"
ok "nothing is kept" test ! -e champion/rmsnorm/emu

run landlock,namespaces
ok "no Landlock, no namespaces: another uid is enough" same "pass promote.first" "$(promoted)"
ok "and is what the verdicts say" all uid
ok "nobody claims the others" none landlock
make report >/dev/null 2>&1
ok "the page says nothing of weakness" not grep -q "weak isolation" reports/index.html

run landlock,namespaces,uid
ok "nor another uid: refused" same "invalid promote.isolation" "$(promoted)"
ok "by name" has "ran without landlock, mountns or uid" jq -r .reason.message "$trial/promote.json"
steps='judge bench confirm' # guard may take a build of before from the cache, with the layers that it was made in
ok "no process that ran it claims a uid" none uid
steps='a0/guard a0/unittest judge bench confirm'

run seccomp ALLOW_WEAK=1
ok "the setting is recorded" has true jq -r .settings.allow_weak trials/runs/r0001/run.json
ok "ALLOW_WEAK=1: a first champion is kept" same "pass promote.first" "$(promoted)"
ok "its verdict says that it is weak" says promote weak
ok "so does the log" has true jq -r 'select(.kept) | .weak' trials/log.jsonl
make report >/dev/null 2>&1
ok "so does the page" grep -q "weak isolation" reports/index.html

run no_new_privs
ok "without no_new_privs nothing untrusted is started at all" not test -e "$trial/a0/guard.json"
ok "and the run says why" grep -q "cannot set no_new_privs" "$work/log"
finish
