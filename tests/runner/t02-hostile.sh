#!/bin/sh
# t02-hostile.sh - a far side that sends anything but the truth: refused, without a trace in the record,
# not charged to the candidate; and with an honest one the run goes on.
#
# SPDX-License-Identifier: MIT
. "$(dirname "$0")/lib.sh"
real_tree
TS_RETRIES=0
export TS_RETRIES

# The far side: honest for all steps but that of $work/mode, where its answer is changed.
cat >"$work/evil" <<'END'
#!/bin/sh
work=$(dirname "$0") mode= step=
[ -f "$work/mode" ] && read -r mode step <"$work/mode"
cat >"$work/in.tar"
"$TS_BIN/far" <"$work/in.tar" >"$work/out.tar"
code=$?
target=$(tar xOf "$work/in.tar" request.json | jq -r '.target // .do')
case $target in
*/"$step".json) ;;
*) cat "$work/out.tar"; exit $code ;;
esac
rm -rf "$work/x"
mkdir "$work/x"
cd "$work/x" || exit 1
tar xf "$work/out.tar"
verdict() { jq "$1" "$target" >v && mv v "$target"; } # verdict FILTER
send() { tar cf - --format=ustar -P "$@" $(find trials -type f); } # more members first
id=trials/0001
case $mode in
same) verdict .; send ;; # what is told by the rest: packed anew is no lie
garbage) seq 2000 ;;
short) echo motd ;;
empty) ;;
cut) head -c 1500 "$work/out.tar" ;;
cut_end) head -c -1024 "$work/out.tar" ;;
more) cat "$work/out.tar"; echo more ;;
escape) echo evil >"$work/evil.txt"; send ../evil.txt ;;
absolute) echo evil >"$work/evil.txt"; send "$work/evil.txt" ;;
symlink) ln -s /etc/passwd $id/judge.log; send $id/judge.log ;;
link) ln "$target" $id/judge.log; send $id/judge.log ;;
folder) send $id ;;
gnu) tar cf - --format=gnu $(find trials -type f) ;;
pax) tar cf - --format=pax --pax-option=comment=x $(find trials -type f) ;;
extra) echo extra >$id/judge.log; send ;;
other_trial) mkdir trials/0002; echo '{}' >trials/0002/trial.json; send ;;
other_step) cp "$target" $id/promote.json; send ;;
run_json) mkdir -p trials/runs/r0001; echo '{}' >trials/runs/r0001/run.json; send ;;
pins) mkdir -p trials/runs/r0001; echo '{}' >trials/runs/r0001/pins.jsonl; send ;;
key) mkdir -p trials/runs/r0001; head -c 32 /dev/zero >trials/runs/r0001/key; send ;;
aa) mkdir -p trials/runs/r0001; echo '{}' >trials/runs/r0001/aa-01234567.json; send ;;
aa_of_its_own) mkdir -p trials/runs/r0003; cd trials/runs/r0003 || exit 1
	echo "samples of $target" >aa-01234567.raw
	echo "{\"raw_sha256\": \"$(sha256sum <aa-01234567.raw | cut -d' ' -f1)\"}" >aa-01234567.json
	cd ../../.. || exit 1; send ;;
none) rm "$target"; send failure.json 2>/dev/null || send ;;
text) echo '{"no": "verdict"}' >"$target"; send ;;
trial) verdict '.trial = "0002"'; send ;;
run) verdict '.run = "r0002"'; send ;;
step) verdict '.stage = "bench"'; send ;;
upstream) verdict '.inputs.upstream = .inputs.trial'; send ;;
spec) verdict '.inputs.spec = .inputs.trial'; send ;;
tool) verdict '.tool.sha256 = .inputs.trial'; send ;;
wrapper) verdict '.tool.name = "run"'; send ;;
names_other) echo "// mine" >k; mkdir -p $id/candidate; mv k $id/candidate/kernel.cu
	sum=$(sha256sum <$id/candidate/kernel.cu | cut -d' ' -f1)
	verdict ".outputs[\"candidate/kernel.cu\"] = \"$sum\""; send ;;
names_out) verdict '.outputs["../0002/trial.json"] = .inputs.trial'; send ;;
names_json) verdict '.outputs["judge.json"] = .inputs.trial'; send ;;
side) echo more >>$id/bench.raw; send ;;
side_gone) rm $id/bench.raw; send ;;
exit255) exit 255 ;;
exit127) exit 127 ;;
exit1) cat "$work/out.tar"; exit 1 ;;
slow_death) cat "$work/out.tar"; kill -9 $$ ;;
blame) rm -rf trials; echo '{"schema":"touchstone/runner/1","who":"child","message":"died"}' >failure.json
	tar cf - --format=ustar failure.json; exit 70 ;;
esac
exit 0
END
chmod +x "$work/evil"

go() {
	"$bin/iterate" --SPEC=vector_add --DEVICE=sim --PROPOSER=sweep --N=1 --RUN_GPU="$work/evil" >"$work/said" 2>&1
	go_code=$?
	cat "$work/said"
	return $go_code
}
record() { find trials -type f ! -path '*/.lock/*' ! -name failures.jsonl ! -name status.json ! -name ids.mk \
	-exec sha256sum {} + | sort -k 2; }

# lie MODE STEP EXIT WHY: refused with that exit code and that reason, and the record is what it was
lie() {
	echo "$1 $2" >"$work/mode"
	ok "$2: $1 ends with $3" code "$3" go
	ok "$2: $1, because '$4'" grep -e "$4" "$work/said"
	record >"$work/after"
	[ -s "$work/before" ] || cp "$work/after" "$work/before"
	ok "$2: $1 leaves no trace" diff "$work/before" "$work/after"
}

: >"$work/before"
lie empty judge 75 'the archive has no end'
lie short judge 75 'the archive has no end'
lie cut judge 75 "ends within 'trials/0001/judge.json'"
lie cut_end judge 75 'the archive has no end'
lie exit255 judge 75 'failed: exit 255'
lie exit1 judge 75 'failed: exit 1'
lie slow_death judge 75 'signal 9'
lie exit127 judge 4 'does not start'
lie garbage judge 3 'not in the format ustar'
lie more judge 3 'goes on behind its end'
lie escape judge 3 'lead out of its folder'
lie absolute judge 3 'lead out of its folder'
lie symlink judge 3 'no regular file'
lie link judge 3 'no regular file'
lie folder judge 3 'no regular file'
lie gnu judge 3 'not in the format ustar'
lie pax judge 3 'no regular file'
lie extra judge 3 "judge.log' is nothing that the verdict names"
lie other_trial judge 3 "0002/trial.json' is nothing that the verdict names"
lie other_step judge 3 "promote.json' is nothing that the verdict names"
lie run_json judge 3 "run.json' is nothing that the verdict names"
lie pins judge 3 "pins.jsonl' is nothing that the verdict names"
lie key judge 3 "key' is nothing that the verdict names"
lie aa judge 3 "json' is nothing that the verdict names"
lie none judge 3 "judge.json' is not there"
lie text judge 3 'schema'
lie trial judge 3 'another step or trial'
lie run judge 3 'another trial, run'
lie step judge 3 'another step or trial'
lie upstream judge 3 'does not follow'
lie spec judge 3 'another trial, run, problem'
lie tool judge 3 'not pinned'
lie wrapper judge 3 'not made by the program'
lie names_other judge 3 "kernel.cu' is no file of this step"
lie names_out judge 3 'is no file of this step'
lie names_json judge 3 "judge.json' is no file of this step"
ok "nothing was written outside" not test -e trials/evil.txt -o -e evil.txt
ok "all of these are the world's fault" same world "$(jq -r .who trials/0001/failures.jsonl | sort -u)"
: >"$work/before"
lie side bench 3 'is not the file that the verdict names'
lie side_gone bench 3 'is named by the verdict and is not there'
lie aa bench 3 'does not fit its samples'

# what the far side says of a failure counts like a failure here: twice ends the trial
echo "blame bench" >"$work/mode"
ok "a candidate that killed its process there: once is tried again" code 70 go
ok "twice ends the trial" go
ok "as a reject of the candidate's" same "reject run.child_died" \
	"$(jq -r '.verdict + " " + .reason.code' trials/0001/promote.json)"
echo "same judge" >"$work/mode"
ok "an honest far side: the next run is a run" has 'run r0002 is done' go
ok "and kept or rejected by its figures" same "$(jq -r .data.closed_by.step trials/0002/promote.json)" \
	"$(jq -r 'if .data.kept then "null" else "bench" end' trials/0002/promote.json)"
# Two trials at a time may measure the same host for themselves: the first one's stands, the other measures
# again with it.
echo "aa_of_its_own bench" >"$work/mode"
ok "a second A/A measurement of the same host" code 75 "$bin/iterate" --SPEC=vector_add --DEVICE=sim \
	--PROPOSER=sweep --N=2 --RUN_GPU="$work/evil"
ok "the first one stands" same "samples of trials/0003/bench.json" "$(cat trials/runs/r0003/aa-01234567.raw)"
ok "and its trial is closed" test -s trials/0003/promote.json -a ! -e trials/0004/bench.json
rm "$work/mode"
ok "the other one goes on with it" has 'run r0003 is done' "$bin/iterate" --resume
finish
