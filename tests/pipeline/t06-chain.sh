#!/bin/sh
# One byte of any recorded file flipped: promote says promote.chain and names the file.
. "$(dirname "$0")/../lib.sh"
real_tree
export TS_RETRIES=0

make iterate DEVICE=sim PROPOSER=sweep N=12 >"$work/log" 2>&1
id=$(jq -r 'select(.kept) | .trial' trials/log.jsonl | head -n 1)
ok "a trial was kept: all of its chain is there" test -n "$id"
[ "$id" ] || { finish; exit 1; }
mv trials/$id/promote.json "$work/promote.json"
cp -a trials "$work/before"

flip() { # flip FILE: change its middle byte
	size=$(stat -c %s "$1")
	at=$((size / 2))
	byte=$(od -An -tu1 -j$at -N1 "$1" | tr -d ' ')
	printf "$(printf '\\%03o' $(((byte + 1) % 256)))" |
		dd of="$1" bs=1 seek=$at conv=notrunc 2>/dev/null
}
promote() {
	rm -f trials/$id/promote.json
	"$bin/run" trials/$id/promote.json >"$work/promote.out" 2>&1
	if [ -e trials/$id/promote.json ]; then
		jq -r '[.verdict, .reason.code, .reason.message] | join(" ")' trials/$id/promote.json
	else # no JSON any more, or not of the right kind: not even a verdict
		sed 's/^/unreadable: /' "$work/promote.out"
	fi
}
refused() { # refused FILE: promote says that FILE is not what was recorded
	promote >"$work/said"
	grep -q -e '^invalid promote\.chain ' -e '^invalid promote\.mac ' -e '^unreadable: ' "$work/said" &&
		grep -q -F "$1" "$work/said" || { cat "$work/said"; return 1; }
}

ok "untouched: kept again" has 'pass promote' promote
files=$(for v in trials/$id/a0/*.json trials/$id/*.json; do
	jq -r 'select(.schema == "touchstone/verdict/1") | .outputs | keys[]' "$v" 2>/dev/null
done | sort -u)
ok "side files are named" test -n "$files"
for file in $files; do
	flip "trials/$id/$file"
	ok "flipped $file" has "invalid promote.chain" promote
	ok "flipped $file is named" has "$file" promote
	rm "trials/$id/$file"
	ok "removed $file is named" has "$file" promote
	cp -a "$work/before/$id/$file" "trials/$id/$file"
done
for step in a0/propose a0/guard a0/unittest a1/propose a1/guard a1/unittest a2/propose a2/guard \
	a2/unittest tune judge bench confirm; do
	flip "trials/$id/$step.json"
	ok "flipped $step.json is refused and named" refused "$step.json"
	cp -a "$work/before/$id/$step.json" "trials/$id/$step.json"
done
for file in $(cd trials/runs/r0001/spec && find . -type f | sed 's,^\./,,'); do
	flip "trials/runs/r0001/spec/$file"
	ok "flipped spec $file" has "invalid promote.chain" promote
	ok "flipped spec $file is named" has "$file" promote
	cp -a "$work/before/runs/r0001/spec/$file" "trials/runs/r0001/spec/$file"
done
flip trials/$id/trial.json
ok "flipped trial.json is refused and named" refused "trial.json"
cp -a "$work/before/$id/trial.json" trials/$id/trial.json
ok "put back: kept again" has 'pass promote' promote

# The key: not evidence that fails, but something missing here.
key=trials/runs/r0001/key
mv $key "$work/key"
rm -f trials/$id/promote.json
ok "no run key: exit 4" code 4 "$bin/run" trials/$id/promote.json
ok "... and it is named" has "promote: cannot open the run's key '$key'" promote
ok "... in a line of its own, without talk of a dead checker" not has 'died' promote
ok "... again and again: it ends no trial" code 4 "$bin/run" trials/$id/promote.json
: >$key
chmod 600 $key
ok "an empty key: exit 3" code 3 "$bin/run" trials/$id/promote.json
cat "$work/key" >$key
chmod 644 $key
ok "a key for everybody to read: exit 3" code 3 "$bin/run" trials/$id/promote.json
chmod 600 $key
ok "the key back: kept again" has 'pass promote' promote

# A stage key of one's own choice would choose the secret inputs; only a replay may bring one.
forged=trials/runs/r0001/stage_key.judge
printf '%064d' 0 >$forged
chmod 600 $forged
mv trials/$id/judge.json "$work/judge.json"
ok "a stage key in a run: the judge refuses" code 3 "$bin/run" trials/$id/judge.json
ok "... and names it" has "'$forged' has no place" "$bin/run" trials/$id/judge.json
rm $forged
mv "$work/judge.json" trials/$id/judge.json
ok "without it: kept again" has 'pass promote' promote
cp trials/runs/r0001/run.json "$work/run.json"
jq '.replay = true' "$work/run.json" >trials/runs/r0001/run.json
ok "a run that calls itself a replay promotes nothing" not has 'pass promote' promote
mv trials/runs/r0001/done.json "$work/done.json"
ok "nor does iterate go on with it" has 'scratch run' make iterate DEVICE=sim PROPOSER=sweep N=12
mv "$work/done.json" trials/runs/r0001/done.json
cp "$work/run.json" trials/runs/r0001/run.json
finish
