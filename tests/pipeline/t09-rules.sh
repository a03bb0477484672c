#!/bin/sh
# What the Makefiles must never contain, who sees the API key, and how fast a large record is read.
. "$(dirname "$0")/../lib.sh"

mk=$(ls "$root/Makefile" "$root"/tools/make/*.mk)
code_of() { sed 's/#.*//' $mk; } # comments may speak of what is forbidden
none() { code_of | grep -n -e "$1" && return 1 || return 0; }
ok "no .SECONDARY" none '^\.SECONDARY'
ok "no \$(shell)" none '\$(shell'
ok "no .WAIT" none '\.WAIT'
ok "no .NOTPARALLEL" none 'NOTPARALLEL'
ok "built-in rules are off" grep -q -e '-rR' "$root/Makefile"
ok ".DELETE_ON_ERROR is on" grep -q '^\.DELETE_ON_ERROR:' "$root/Makefile"
ok "the Makefile is a page or five" test "$(wc -l <"$root/Makefile")" -le 250
ok "help is the default goal" has 'run N trials on SPEC' make -C "$root"
ok "help names every goal" sh -c '
	cd "$1" || exit 1
	help=$(make help)
	for goal in help all iterate resume status report champion check try replay redo adopt new test \
		clean devices tidy stale; do
		case $help in *"
  $goal "*) ;; *) echo "$goal is missing"; exit 1 ;; esac
	done' sh "$root"
ok "each program has a page of help" sh -c '
	for p in "$1"/bin/*; do
		case ${p##*/} in elfscan) continue ;; esac
		"$p" -h >/dev/null || { echo "$p -h failed"; exit 1; }
	done' sh "$build"

# Programs that write down their environment, in the place of stages.
fake_tree
for stage in propose guard judge; do
	printf '#!/bin/sh\nenv >"%s/env.%s"\nexit 75\n' "$work" $stage >"$bin/$stage"
done
mkdir -p prompts/profiles
cat >prompts/profiles/openai.json <<'P'
{"schema":"touchstone/profile/1","base_url":"http://127.0.0.1:1","model":"m","key_env":"MY_TEST_KEY"}
P
export MY_TEST_KEY=sekret-4711 OTHER_SECRET=sekret-4712
MAKE=/bin/true "$bin/iterate" --DEVICE=sim --PROPOSER=openai --N=1 >"$work/banner" 2>&1
for stage in propose guard; do
	"$bin/run" trials/0001/a0/$stage.json >/dev/null 2>&1
done
"$bin/run" trials/0001/judge.json >/dev/null 2>&1
ok "the banner says that the key can be seen" grep -q 'key .*MY_TEST_KEY' "$work/banner"
ok "propose gets the key" grep -q sekret-4711 "$work/env.propose"
ok "guard does not" not grep -q sekret-471 "$work/env.guard"
ok "judge does not" not grep -q sekret-471 "$work/env.judge"
ok "no other secret goes anywhere" not grep -q sekret-4712 "$work/env.propose"
ok "HOME is for propose alone" not grep -q '^HOME=' "$work/env.guard"
ok "no file of the record has it" not grep -rq sekret-471 trials
unset MY_TEST_KEY OTHER_SECRET

# 5,000 finished trials: make looks at 70,000 verdicts.
rm -rf trials
mkdir -p trials/runs/r0001
seq -f %04g 1 5000 >"$work/ids"
{
	printf 'TS_IDS :='
	tr '\n' ' ' <"$work/ids" | sed 's/^/ /'
	printf '\nTS_W := 4\nTS_G := 1\n'
} >trials/runs/r0001/ids.mk
sed 's,.*,trials/&/a0 trials/&/a1 trials/&/a2,' "$work/ids" | xargs mkdir -p
for step in trial a0/propose a0/guard a0/unittest a1/propose a1/guard a1/unittest a2/propose \
	a2/guard a2/unittest tune judge bench confirm promote; do
	sed "s,.*,trials/&/$step.json," "$work/ids" | xargs touch
done
start=$(date +%s%N)
ok "5,000 trials are up to date" make -q -f tools/make/trials.mk TS_RUN=trials/runs/r0001 TS_RUNNER=run
took=$((($(date +%s%N) - start) / 1000000))
ok "make saw that in less than 5 s ($took ms)" test $took -lt 5000

# install-deps without anything installed says what to run, and does nothing without a terminal.
mkdir "$work/bare"
for tool in id apt-get; do
	printf '#!/bin/sh\n[ %s = id ] && echo 1000\nexit 0\n' $tool >"$work/bare/$tool"
	chmod +x "$work/bare/$tool"
done
ok "install-deps is quiet here" same '' "$("$root/tools/install-deps" 2>&1)"
ok "it prints the command and exits 4" code 4 env PATH="$work/bare" /bin/sh "$root/tools/install-deps"
ok "the command is whole" has 'apt-get -q update && apt-get -q install -y --no-install-recommends gcc g++' \
	env PATH="$work/bare" /bin/sh "$root/tools/install-deps"
finish
