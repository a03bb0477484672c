#!/bin/sh
# t01-sim.sh - a run with its steps done by a runner is the run that it is without one: sim, whose figures
# repeat exactly. A far side of another build is pinned; unit tests may go elsewhere or stay.
#
# SPDX-License-Identifier: MIT
. "$(dirname "$0")/lib.sh"
real_tree
mkdir -p "$work/here"
home=$work/tree

run_of() { # run_of FOLDER ARG...: four trials in a folder of their own, what they came to
	mkdir -p "$work/$1"
	cd "$work/$1" || exit 1
	for part in Makefile tools stages specs prompts; do [ -e "$part" ] || ln -s "$root/$part" "$part"; done
	shift
	"$bin/iterate" --SPEC=vector_add --DEVICE=sim --PROPOSER=sweep --N=4 "$@" >"$work/log" 2>&1 || cat "$work/log"
	essence
	verdicts
}

run_of local >"$work/want"
run_of loop --RUN_GPU=loopback >"$work/got"
ok "four trials by loopback come to what they come to here" diff "$work/want" "$work/got"
ok "nothing is left behind" same "" "$(leftovers)"
ok "the run says by whom" same loopback "$(jq -r .settings.runner trials/runs/r0001/run.json)"
run_of wide_local --WIDTH=3 >"$work/want3"
run_of wide --WIDTH=3 --RUN_GPU=loopback >"$work/got"
ok "three at a time too" diff "$work/want3" "$work/got"

# every call is counted, and says which step it is for
cat >"$work/count" <<END
#!/bin/sh
in=\$(mktemp "$work/in.XXXXXX")
cat >"\$in"
tar xOf "\$in" request.json | jq -r '.target // .do' | sed "s|^|\$1 |" >>"$work/calls"
exec "$root/tools/runners/loopback" <"\$in"
END
chmod +x "$work/count"
: >"$work/calls"
run_of split --RUN_GPU="$work/count a" --RUN_UNITTEST="$work/count b" >"$work/got"
ok "unit tests by a runner of their own" diff "$work/want" "$work/got"
ok "which got the unit tests and nothing else" same "hello
trials/0001/a0/unittest.json
trials/0002/a0/unittest.json
trials/0003/a0/unittest.json
trials/0004/a0/unittest.json" "$(sed -n 's/^b //p' "$work/calls")"
ok "steps that are skipped are not sent, proposals and promotions never" \
	not grep -e propose -e promote -e a1 -e a2 "$work/calls"
: >"$work/calls"
run_of stays --RUN_GPU="$work/count a" --RUN_UNITTEST=local >"$work/got"
ok "or here" diff "$work/want" "$work/got"
ok "and then it is not sent" not grep unittest "$work/calls"
ok "the name of the machine stays in a file of its own" same ./runs/r0001/runner.json \
	"$(cd trials && grep -r -l -e "/count a" . | sort)"
ok "no key of the run, no prompt and no reply travels" not sh -c 'for t in "$1"/in.*; do tar tf "$t"; done |
	grep -e "/key$" -e prompt -e reply -e ledger -e runner.json' sh "$work"
ok "the keys of a step do" sh -c 'for t in "$1"/in.*; do tar tf "$t"; done | grep -q "/keys.judge$"' sh "$work"

# another build there: each program has another hash
mkdir -p "$work/far/.build"
cp -r "$bin" "$work/far/.build/bin"
for part in stages tools; do ln -s "$root/$part" "$work/far/$part"; done
for program in guard unittest tune judge bench; do printf x >>"$work/far/.build/bin/$program"; done
rm -rf "$work/far/.build/bin/.sha"
printf '#!/bin/sh\ncd "%s/far" || exit 4\nTS_BIN=%s/far/.build/bin exec .build/bin/far\n' "$work" "$work" >"$work/other"
chmod +x "$work/other"
run_of other_build --RUN_GPU="$work/other" >"$work/got"
ok "another build on the far side gives the same" diff "$work/want" "$work/got"
ok "and is pinned by its hash" same "$(sha256sum <"$work/far/.build/bin/judge" | cut -d' ' -f1)" \
	"$(jq -r .tools.judge trials/runs/r0001/pins.jsonl)"
ok "which the verdict names" same "$(jq -r .tools.judge trials/runs/r0001/pins.jsonl)" \
	"$(jq -r .tool.sha256 trials/0001/judge.json)"
ok "its folder is left clean" same "" "$(find "$work/far/trials" -type f ! -path '*/.lock/*')"

cd "$home" || exit 1
mkdir -p "$work/none"
ok "no such runner" code 4 "$bin/iterate" --SPEC=vector_add --DEVICE=sim --N=1 --RUN_GPU=/nonesuch
ok "a runner that says nothing is tried again later" code 75 "$bin/iterate" --SPEC=vector_add --DEVICE=sim --N=1 \
	--RUN_GPU=/bin/true
ok "one that talks is not understood" code 3 "$bin/iterate" --SPEC=vector_add --DEVICE=sim --N=1 \
	--RUN_GPU='seq 1000'
ok "a device that is not there is said by the far side" has "by 'loopback'" \
	"$bin/iterate" --SPEC=vector_add --DEVICE=nvidia-nonesuch --N=1 --RUN_GPU=loopback
ok "none of these made a run" not test -e trials/runs/r0001
ok "far wants an archive" code 3 sh -c 'seq 1000 | "$1/far" >"$2/answer"' sh "$bin" "$work"
ok "and answers with one that says why" has 'archive is refused' tar xOf "$work/answer" failure.json
finish
