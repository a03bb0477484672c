#!/bin/sh
# What may happen to a tree between two makes, and buys no proposal twice: touched and rebuilt programs, a
# copy elsewhere, another clock, dry runs. The server counts.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../kill/lib.sh"
helper server "$root"/tests/server/*.c || { echo "Bail out! no test server"; exit 1; }
DELAY_MS=0
serve again

# A tree of its own, sources and build: they will be touched.
base=$(basename "$build")
mkdir -p "$work/one/$base"
cd "$work/one" || exit 1
for part in Makefile tools stages specs prompts; do
	cp -a "$root/$part" .
done
for part in bin obj ok lib.a; do
	cp -a "$build/$part" "$base/"
done
case $build in *-san) SAN=1; export SAN ;; esac
go() { make iterate DEVICE=sim PROPOSER=openai N=4 MAX_CALLS=3; }
asked() { wc -l <"$work/again.calls" | tr -d ' '; }
closed() { ls trials/*/promote.json | wc -l | tr -d ' '; }
listing() { find . -path ./trials/.lock -prune -o -type f -printf '%p %s %T@\n' | sort; }

ok "the budget ends the run before its last trial" not go
ok "three replies, three trials" same "3 3" "$(asked) $(closed)"
# Trial 3 as if everything had been killed right after its reply was stored.
(
	cd trials && rm -rf 0003/*.json.tmp 0003/tune.json 0003/judge.json 0003/bench.json 0003/confirm.json \
		0003/promote.json 0003/a0/propose.json 0003/a0/proposal.json 0003/a0/guard.json \
		0003/a0/unittest.json 0003/a1 0003/a2 history.git .derived
	sed -i 3,9d log.jsonl index.tsv
)
cp -a trials "$work/trials"
champion=$(ls -d champion) && cp -a champion "$work/champion"

goes_on() { # goes_on WHAT: dry runs do nothing, then trial 3 is finished from its stored reply
	before=$(listing)
	ok "$1: make -n" make -n iterate DEVICE=sim PROPOSER=openai N=4 MAX_CALLS=3
	ok "$1: make -q" code 1 make -q iterate DEVICE=sim PROPOSER=openai N=4
	ok "$1: make -t" code 2 make -t iterate DEVICE=sim PROPOSER=openai N=4
	ok "$1: dry runs asked and wrote nothing" same "$before" "$(listing)"
	go >"$work/log" 2>&1
	ok "$1: trial 3 is closed" same 3 "$(closed)"
	ok "$1: no reply was bought again" same 3 "$(asked)"
	ok "$1: the run waits for its budget" grep -q 'max_calls=3' "$work/log"
}
restore() {
	rm -rf trials champion
	cp -a "$work/trials" trials
	cp -a "$work/champion" champion
}

goes_on "killed after the reply"
restore
touch stages/*.c stages/lib/prompt.c prompts/*.md specs/vector_add/* tools/make/trials.mk
go >/dev/null 2>&1 # rebuilds
ok "touched sources: rebuilt" test "$base/bin/propose" -nt stages/propose.c
restore
goes_on "touched and rebuilt"
restore
printf '\n/* another build */\n' >>stages/propose.c
printf 'int touchstone_other_build = 1;\n' >>stages/propose.c
make all >/dev/null 2>&1
goes_on "other programs"
ok "other programs: said" grep -q 'rebuilt since the run began' "$work/log"
restore
mkdir "$work/two" && cp -R . "$work/two/" && cd "$work/two" || exit 1
find trials -type f -exec touch {} +
goes_on "a copy elsewhere"
cd "$work/one" || exit 1
restore
find trials -type f -exec touch -d '2001-01-01' {} +
touch -d '2035-01-01' trials/*/trial.json trials/0001/a0/*.json trials/0002/*.json trials/runs/r0001/*
goes_on "another clock"
kill $server_pid
finish
