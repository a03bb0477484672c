#!/bin/sh
# t04-kill.sh - a run by a runner, with processes of both sides killed at random instants: it comes to its
# end, with the verdicts of a run that nobody disturbed. The far side has a record of its own.
#
# SPDX-License-Identifier: MIT
. "$(dirname "$0")/lib.sh"
. "$root/tests/kill/lib.sh"
command -v jq >/dev/null || skip_all "jq is not installed"
seed=${KILL_SEED:-$(od -An -tu4 -N4 /dev/urandom | tr -d ' ')}
kills=${KILLS:-12} trials=${N:-5}
echo "# KILL_SEED=$seed KILLS=$kills N=$trials"
helper killer "$root/tests/kill/killer.c" || { echo "Bail out! the test program does not build"; exit 1; }
real_tree
mkdir "$work/calm"
second far
printf '#!/bin/sh\ncd "%s/far" && exec .build/bin/far\n' "$work" >"$work/there"
# what a real carrier is: something between, that dies by itself
printf '#!/bin/sh\n"%s/there"\nexit $?\n' "$work" >"$work/carry"
chmod +x "$work/there" "$work/carry"
unset TS_BIN

ok "the run that is left alone" "$bin/iterate" --SPEC=vector_add --DEVICE=sim --PROPOSER=sweep --N="$trials" \
	--WIDTH=2 --SIM_SECONDS=0.2
essence >"$work/want"
mv trials champion reports "$work/calm"
ok "the run whose processes are killed comes to its end" "$build/test/killer" --seed "$seed" --kills "$kills" \
	--trials "$trials" --done trials/runs/r0001/done.json --log "$work/kills" --every-ms 250 \
	--names run,far,carry,guard,unittest,tune,judge,bench,iterate -- "$bin/iterate" --SPEC=vector_add --DEVICE=sim \
	--PROPOSER=sweep --N="$trials" --WIDTH=2 --SIM_SECONDS=0.2 --RUN_GPU="$work/carry"
essence >"$work/got"
echo "# hit:$(kinds)"
ok "some were killed" test "$(jq -r 'select(.kill) | .kill' "$work/kills" | wc -l)" -ge 3
ok "it came to the same" diff "$work/want" "$work/got"
ok "no trial ended for our own failures" same '' \
	"$(jq -r 'select(.reason.code | startswith("run.")) | .trial' trials/*/promote.json)"
ok "no artefact was damaged" same '' "$(find trials -path '*/bad/*')"
ok "every step of every trial is there once" same $((14 * trials)) \
	"$(find trials/0* -name '*.json' ! -name trial.json ! -name proposal.json ! -path '*candidate*' -exec jq -r .schema {} + |
		grep -c '^touchstone/verdict/1$')"
echo "{\"schema\":\"touchstone/runner/1\",\"do\":\"hello\",\"device\":\"sim\"}" >"$work/request.json"
ok "and what the killed left there goes with the next step" sh -c '
	tar cf - --format=ustar -C "$1" request.json | "$1/there" >/dev/null && test -z "$(ls -A "$1/far/trials/.far")"' sh "$work"
# The caller goes while a step is at work on a machine that its death does not reach: the step ends, and the
# lane is free.
printf '#!/bin/sh\nexec 3<&0\nsetsid -w "%s/there" <&3 &\nwait $!\n' "$work" >"$work/distant"
chmod +x "$work/distant"
setsid "$bin/iterate" --SPEC=vector_add --DEVICE=sim --PROPOSER=sweep --N=1 --SIM_SECONDS=120 \
	--RUN_GPU="$work/distant" >"$work/said" 2>&1 &
caller=$!
until_true() { # until_true COMMAND...: at most ten seconds
	for _ in $(seq 100); do "$@" && return; sleep 0.1; done
	return 1
}
timing() { # a bench in a folder of the far side
	for p in /proc/[0-9]*; do
		[ "$(cat "$p/comm" 2>/dev/null)" = bench ] || continue
		case $(readlink "$p/cwd") in "$work/far/"*) return 0 ;; esac
	done
	return 1
}
ok "a bench is at work there" until_true timing
kill -9 -$caller
ok "the caller is gone: so is its step, soon" until_true sh -c 'test -z "$(ls -A "$1/far/trials/.far")"' sh "$work"
ok "with its process, and so the lane" not timing
finish
