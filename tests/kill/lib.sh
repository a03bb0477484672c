# lib.sh - the kill-anywhere proof; wants $kills, $trials, $width and tests/lib.sh.
#
# SPDX-License-Identifier: MIT

# The leak check at a program's end is a process too: killed, it leaves the program waiting for ever. Leaks are
# looked for in every other suite.
case $build in *-san) ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0; export ASAN_OPTIONS ;; esac

helper() { # helper NAME SOURCE...: build a test program that is newer than its sources
	helper_to=$build/test/$1
	shift
	mkdir -p "$build/test"
	[ -x "$helper_to" ] && [ -z "$(find "$@" "$build/lib.a" -newer "$helper_to")" ] && return 0
	helper_san=
	case $build in *-san) helper_san=-fsanitize=address,undefined ;; esac
	${CC:-cc} -std=c11 -D_GNU_SOURCE -Wall -Wextra -O1 -g $helper_san -o "$helper_to.$$" "$@" "$build/lib.a" \
		-lcjson -lcrypto -lseccomp -lm -ldl && mv "$helper_to.$$" "$helper_to"
}

serve() { # serve NAME: calls go to $work/NAME.calls; sets port and server_pid
	printf '{"replies":[{"model":true,"delay_ms":%d}]}\n' "${DELAY_MS:-300}" >"$work/script.json"
	"$build/test/server" --script "$work/script.json" --log "$work/$1.calls" \
		--port-file "$work/$1.port" >/dev/null 2>"$work/$1.server" &
	server_pid=$!
	serve_tries=100
	while [ ! -s "$work/$1.port" ] && [ $serve_tries -gt 0 ]; do
		sleep 0.1
		serve_tries=$((serve_tries - 1))
	done
	port=$(cat "$work/$1.port")
	OPENAI_BASE_URL=http://127.0.0.1:$port/v1 OPENAI_API_KEY=sk-not-a-secret OPENAI_MODEL=scripted
	export OPENAI_BASE_URL OPENAI_API_KEY OPENAI_MODEL
}

tree() { # tree NAME: a copy of the project without a record, and into it
	mkdir -p "$work/$1"
	cd "$work/$1" || exit 1
	for part in Makefile tools stages specs prompts tests; do
		ln -s "$root/$part" "$part"
	done
	ln -s "$build" "$(basename "$build")"
	case $build in *-san) SAN=1; export SAN ;; esac
}

settings() {
	echo "DEVICE=sim SPEC=${SPEC:-vector_add} PROPOSER=openai N=$trials WIDTH=$width SEED=3 SIM_SECONDS=${SIM_S:-0.4}"
}

verdicts() {
	for promote in trials/[0-9]*/promote.json; do
		jq -c '[.trial, .verdict, .reason.code, .data.candidate_sha256, .data.ratio,
			.data.after]' "$promote"
	done
}
ids() { seq -f %04g 1 "$trials"; }
refs() { git --git-dir=trials/history.git for-each-ref --format='%(refname)'; }

# Calls of a trial beyond the first, each paid for by a client killed before its reply was stored.
repeats_explained() {
	repeats_bad=0
	for trial in $(ids); do
		key=$(jq -r '.headers[] | select(startswith("Idempotency-Key: ")) | .[17:]' \
			"trials/$trial/a0/request.json")
		asked=$(grep -c "$key" "$work/killed.calls")
		hit=$(jq -r --arg t "trials/$trial/" 'select(.name == "client" and
			(.target | startswith($t)) and (.stored | not)) | .kill' "$work/kills" | wc -l)
		if [ "$asked" -lt 1 ] || [ "$asked" -gt $((1 + hit)) ]; then
			echo "trial $trial: asked $asked times, $hit clients killed before they stored"
			repeats_bad=1
		fi
	done
	return $repeats_bad
}

# A make that nobody disturbed may only fail because something of an earlier one is still at work.
sessions_explained() {
	sessions_bad=0
	for session in $(jq -r 'select(.kills == 0 and .exit != 0) | .session' "$work/kills"); do
		grep -q -e 'another make is at work' -e 'exit 75' "$work/kills.$session" && continue
		echo "make number $session failed and nobody was killed:"
		tail -n 5 "$work/kills.$session"
		sessions_bad=1
	done
	return $sessions_bad
}

kinds() { jq -r 'select(.kill) | .name' "$work/${1:-kills}" | sort | uniq -c | sort -rn | awk '{ printf " %s %s", $2, $1 }'; }

kill_proof() {
	command -v jq >/dev/null || skip_all "jq is not installed"
	seed=${KILL_SEED:-$(od -An -tu4 -N4 /dev/urandom | tr -d ' ')}
	echo "# KILL_SEED=$seed KILLS=$kills N=$trials WIDTH=$width"
	helper server "$root"/tests/server/*.c && helper killer "$root/tests/kill/killer.c" ||
		{ echo "Bail out! the test programs do not build"; exit 1; }
	serve calm
	tree calm
	ok "the run that is left alone" make -j4 iterate $(settings)
	verdicts >"$work/want"
	refs >"$work/want.refs"
	readlink champion/*/sim >"$work/want.champion"
	kill $server_pid
	serve killed
	tree killed
	start=$(date +%s)
	ok "the run whose processes are killed comes to its end" "$build/test/killer" --seed "$seed" \
		--kills "$kills" --trials "$trials" --done trials/runs/r0001/done.json --log "$work/kills" \
		-- make -j4 iterate $(settings)
	kill $server_pid
	echo "# $(jq -r 'select(.kill) | .kill' "$work/kills" | wc -l) kills in $(($(date +%s) - start)) s," \
		"$(jq -r 'select(.exit) | .session' "$work/kills" | wc -l) makes," \
		"$(wc -l <"$work/killed.calls") calls; hit:$(kinds)"
	check_record
	check_money
}

check_record() {
	verdicts >"$work/got"
	refs >"$work/got.refs"
	ids >"$work/ids"
	# The short form may be over before all are made: how fast a run is, is the machine's affair.
	ok "at least ${least:-$kills} kills were made" \
		test "$(jq -r 'select(.kill) | .kill' "$work/kills" | wc -l)" -ge "${least:-$kills}"
	ok "a make that nobody disturbed works" sessions_explained
	ok "one run" same r0001 "$(ls trials/runs)"
	ok "the verdicts are those of the run left alone" diff "$work/want" "$work/got"
	ok "the log has each trial once, in order" sh -c "jq -r .trial trials/log.jsonl | diff '$work/ids' -"
	ok "the index too" sh -c "cut -f1 trials/index.tsv | diff '$work/ids' -"
	ok "history is sound" git --git-dir=trials/history.git fsck --strict
	ok "history has every branch" diff "$work/want.refs" "$work/got.refs"
	ok "the champion is the same" same "$(cat "$work/want.champion")" "$(readlink champion/*/sim)"
	ok "and whole" test -s champion/*/sim/evidence/promote.json -a -s champion/*/sim/kernel.cu
	ok "nothing temporary is left" same '' "$(find trials champion reports -name '*.tmp*' -o -name '.new*' \
		-o -name 'tmp_*' -o -name '*.lock' -type f)"
	ok "no artefact was damaged" same '' "$(find trials -path '*/bad/*')"
	ok "no trial ended for our own failures" same '' \
		"$(jq -r 'select(.reason.code | startswith("run.")) | .trial' trials/*/promote.json)"
}

check_money() {
	ledger=trials/runs/r0001/ledger.jsonl
	calls=$(wc -l <"$work/killed.calls")
	reserved=$(grep -c '"kind":"reserve"' $ledger)
	jq -r 'select(.kind == "settle") | .id' $ledger | sort >"$work/settled"
	jq -r 'select(.kind == "interrupted") | .id' $ledger | sort >"$work/interrupted"
	lost=$(comm -13 "$work/settled" "$work/interrupted" | wc -l)
	echo "# $reserved calls reserved, $(wc -l <"$work/interrupted") of them interrupted, $lost of these without a reply"
	ok "one call a trial was settled" same "$trials" "$(wc -l <"$work/settled")"
	ok "no call beyond those and the interrupted ones without a reply" test "$calls" -le $((trials + lost))
	ok "no reply that was stored was asked for again" repeats_explained
	ok "every reservation is settled or marked" same "$reserved" "$((trials + lost))"
	ok "none twice" same '' "$(uniq -d "$work/settled"; uniq -d "$work/interrupted")"
	ok "the total is what was settled and lost" jq -e -s '
		(map(select(.kind == "settle") | .id)) as $settled |
		map(select(.kind == "settle" or (.kind == "reserve" and (.id | IN($settled[]) | not)))) |
		map(.tokens_in + .tokens_out) | add == '"$(jq -s 'last.total | .tokens_in + .tokens_out' $ledger)" $ledger
}

# On the emulated device figures are measured, so that two runs are never equal. But nobody is to be blamed for
# a compiler, a box or a kernel's process that was killed: not even in the cache, where a failed compile
# stays. Kills come slowly: the same thing killed twice in the same step is held against it.
kill_emulated() {
	tree emulated
	seed=${KILL_SEED:-$(od -An -tu4 -N4 /dev/urandom | tr -d ' ')}
	ok "an emulated run comes to its end" "$build/test/killer" --seed "$seed" --kills "${EMU_KILLS:-12}" \
		--every-ms 2500 --trials 3 --done trials/runs/r0001/done.json --log "$work/emulated.kills" \
		--names box,g++,gcc,cc1plus,as,ld,elfscan,child,memfd:image,image,checker,guard,unittest,judge,bench \
		-- make -j4 iterate DEVICE=emu SPEC=vector_add PROPOSER=sweep N=3 SEED="$((seed % 1000 + 1))"
	echo "# KILL_SEED=$seed emulated; hit:$(kinds emulated.kills)"
	ok "emulated: every trial is closed once" same "0001 0002 0003" "$(jq -r .trial trials/log.jsonl | xargs)"
	ok "emulated: no candidate was blamed" same '' "$(jq -r '.reason | select(.code |
		test("^compile|[.](fault|protocol|timeout|rival|invalid_env)$|^run.harness")) | .code + " " + .message' \
		trials/*/promote.json)"
	ok "emulated: every kill was made or the run was over" test "$(jq -r 'select(.kill) | .kill' "$work/emulated.kills" | wc -l)" -ge 3
	ok "emulated: nothing temporary is left" same '' "$(find trials champion reports -name '*.tmp*')"
}
