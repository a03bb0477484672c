#!/bin/sh
# A run has its judge tried before the first trial and after each change of the programs, says so, and keeps
# nothing without: missing, failed, or of other programs.
# SPDX-License-Identifier: MIT
. "$(dirname "$0")/../cuda/lib.sh"
need_plain
need_nvrtc
fake_gpu
fake_spec
export TS_RETRIES=0
tests=trials/runs/r0001/selftest.jsonl
lines() { wc -l <"$tests"; }

"$bin/iterate" --SPEC=fake_add --DEVICE=cuda --PROPOSER=sweep --N=1 --UNITTEST_DEVICE=none >"$work/log" 2>&1
ok "something is kept" test "$(jq -r .data.kept trials/0001/promote.json)" = true
ok "the banner says it in one clause" grep -q '^  judge     self-test passed: [0-9]* specimens of [0-9]* rules$' "$work/log"
ok "one record, of this GPU" same "$(jq -r '.schema, .device, .verdict' "$tests")" \
	"$(printf 'touchstone/selftest/1\nfake-gpu-tests\npass')"
ok "of the programs that are pinned" same "$(jq -r '.tools | .judge, .bench, .checker, .worker' "$tests")" \
	"$(jq -r '.pins.tools | .judge, .bench, .checker, .worker' trials/runs/r0001/run.json)"
ok "and the verdict names it by hash" same "$(jq -r .inputs.selftest trials/0001/promote.json)" \
	"$(head -n 1 "$tests" | tr -d '\n' | sha256sum | cut -d ' ' -f 1)"

# The keys of what timed it are the ones that rng.h says (../pipeline/t15-keys.sh has the rest).
hmac() { printf %s "$2" | openssl dgst -sha256 -mac HMAC -macopt "hexkey:$1" | sed 's/.* //'; }
stage_key() { hmac "$(hmac "$(od -An -v -tx1 trials/runs/r0001/key | tr -d ' \n')" trial:0001)" "stage:$1"; }
if command -v openssl >/dev/null; then
	for step in judge bench confirm; do
		ok "$step publishes its own key" same "$(jq -r .data.stage_key trials/0001/$step.json)" "$(stage_key $step)"
	done
fi

cp "$tests" "$work/tests"
promote() {
	rm -f trials/0001/promote.json
	"$bin/run" trials/0001/promote.json >"$work/promote.out" 2>&1
	jq -r '[.verdict, .reason.code, .reason.message, .data.charged] | join(" ")' trials/0001/promote.json
}
ok "closed again: kept again" has "pass promote" promote
rm "$tests"
ok "without a record nothing is kept, and nothing charged" has \
	"invalid promote.selftest the judge's self-test was never made false" promote
jq -c '.verdict = "fail" | .failed = 1 | .words = "judge.row (a row)"' "$work/tests" >"$tests"
ok "a failed one" has "invalid promote.selftest the judge's self-test failed: judge.row (a row)" promote
jq -c '.failed = 1' "$work/tests" >"$tests"
ok "one that says pass and counts a failure" has "invalid promote.selftest" promote
for program in judge bench; do
	jq -c --arg p $program '.tools[$p] = (.tools[$p] | explode | reverse | implode)' "$work/tests" >"$tests"
	ok "one of another $program" has "invalid promote.selftest the judge's self-test was not made with" promote
done
jq -c '.device = "emu"' "$work/tests" >"$tests"
ok "one on another device" has "invalid promote.selftest" promote
{ cat "$work/tests"; jq -c '.verdict = "fail"' "$work/tests"; } >"$tests"
ok "a later failure of the same programs counts" has "invalid promote.selftest" promote
{ jq -c '.verdict = "fail"' "$work/tests"; cat "$work/tests"; } >"$tests"
ok "and so does a later pass" has "pass promote" promote
cp "$work/tests" "$tests"
ok "the reason is on the list" grep -q '"promote.selftest"' "$root/stages/lib/reason.c"

# Going on with the run.
reopen() { rm -f trials/0001/promote.json trials/runs/r0001/done.json; }
reopen
ok "resumed with the same programs: not made again" "$bin/iterate" --resume
ok "still one record" same "$(lines)" 1
mkdir -p "$work/other/.build"
cp -r "$bin" "$work/other/.build/bin"
ln -s "$root/stages" "$work/other/stages"
ln -s "$build/cache" "$work/other/.build/cache"
bin2=$work/other/.build/bin
echo >>"$bin2/judge"
reopen
ok "resumed with others: made again" env TS_BIN="$bin2" "$bin2/iterate" --resume
ok "two records" same "$(lines)" 2
ok "the trial that the first ones judged is kept still" same "$(jq -r .data.kept trials/0001/promote.json)" true

# A judge that is broken starts nothing.
mv "$bin2/selftest" "$bin2/real"
cat >"$bin2/selftest" <<'END'
#!/bin/sh
out=${2#--out=}
"$(dirname "$0")/real" "$@" || exit
jq -c '.verdict = "fail" | .failed = 1 | .words = "judge.nan (one NaN: ACCEPTED)"' "$out" >"$out.2" && mv "$out.2" "$out"
exit 70
END
chmod +x "$bin2/selftest"
broken() { TS_BIN=$bin2 "$bin2/iterate" --SPEC=fake_add --DEVICE=cuda --PROPOSER=sweep --N=1; }
ok "a broken judge starts nothing" code 70 broken
ok "and says which rule" has "self-test failed: judge.nan (one NaN: ACCEPTED)" broken
ok "no trial of that run began" test ! -e trials/0002/a0
ok "nobody asks on sim" "$bin/iterate" --SPEC=fake_add --DEVICE=sim --PROPOSER=sweep --N=1 --NEW=1
ok "and no record is there" test ! -e "$(dirname "$tests")/../r0003/selftest.jsonl"
finish
