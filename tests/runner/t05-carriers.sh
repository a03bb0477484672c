#!/bin/sh
# t05-carriers.sh - the shipped runners with stand-ins for ssh and srun: what they are told, what they carry,
# and how their own troubles end.
#
# SPDX-License-Identifier: MIT
. "$(dirname "$0")/lib.sh"
real_tree
[ -e .build ] || ln -s "$build" .build # the folder that is one there, also with sanitizers
unset TS_BIN # as on another machine
mkdir -p "$work/path" "$work/home"
second home/touchstone
second home/other

# ssh [-o X=Y]... [-T] [--] HOST COMMAND: a login shell at home, with what standard input brings.
cat >"$work/path/ssh" <<END
#!/bin/sh
while [ \$# != 0 ]; do
	case \$1 in -o) shift 2 ;; -T) shift ;; --) shift; break ;; *) break ;; esac
done
echo "ssh \$1 \$2" >>"$work/said"
env | grep -e API_KEY -e SECRET >>"$work/leaked"
[ -s "$work/trouble" ] && exit 255
[ "\$1" = noisy ] && seq 500
cd "$work/home" && exec env -i HOME="$work/home" PATH="\$PATH" sh -c "\$2"
END
# srun OPTION... PROGRAM: in the folder of --chdir
cat >"$work/path/srun" <<END
#!/bin/sh
dir=.
echo "srun \$*" >>"$work/said"
while [ \$# != 0 ]; do
	case \$1 in --chdir=*) dir=\${1#--chdir=}; shift ;; -p | -t) shift 2 ;; -*) shift ;; *) break ;; esac
done
[ -s "$work/trouble" ] && { echo "srun: error: no nodes" >&2; exit 1; }
cd "\$dir" && exec "\$@"
END
chmod +x "$work/path/ssh" "$work/path/srun"
PATH=$work/path:$PATH OPENAI_API_KEY=sk-not-a-secret MY_SECRET=1 TS_RETRIES=0 TMPDIR=$work
export PATH OPENAI_API_KEY MY_SECRET TS_RETRIES TMPDIR

go() { "$bin/iterate" --SPEC=vector_add --DEVICE=sim --PROPOSER=sweep --N=1 "$@"; }

: >"$work/leaked"
ok "ssh: a trial" has 'run r0001 is done' go --RUN_GPU='ssh gpuhost'
ok "in ~/touchstone there" same "ssh gpuhost cd touchstone || exit 4; exec .build/bin/far" "$(sort -u "$work/said")"
ok "five steps and one question, each its own call" same 6 "$(wc -l <"$work/said")"
ok "no key of ours goes along" same "" "$(cat "$work/leaked")"
: >"$work/said"
ok "ssh: another folder" has 'run r0002 is done' go --RUN_GPU='ssh me@gpuhost ~/other'
ok "is named" same "ssh me@gpuhost cd other || exit 4; exec .build/bin/far" "$(sort -u "$work/said")"
ok "a folder that would be a command is not" code 2 tools/runners/ssh gpuhost 'a;touch b'
ok "nor an option as host" code 2 tools/runners/ssh -oProxyCommand=x
ok "ssh: no machine" code 2 tools/runners/ssh
echo 1 >"$work/trouble"
ok "ssh: a connection that fails is tried again later" code 75 go --RUN_GPU='ssh gpuhost'
rm "$work/trouble"
ok "ssh: a folder without programs is said" code 4 go --RUN_GPU='ssh gpuhost nowhere'
ok "ssh: a login that talks is refused" has 'not in the format ustar' go --RUN_GPU='ssh noisy'

: >"$work/said"
ok "slurm: a trial, in this folder" has 'run r0003 is done' go --RUN_GPU='slurm -p gpu -t 30'
ok "with a GPU, one task, our words" same \
	"srun --ntasks=1 --quiet --unbuffered --chdir=$work/tree -p gpu -t 30 --gpus=1 .build/bin/far" \
	"$(sort -u "$work/said")"
: >"$work/said"
ok "slurm: another folder, its own kind of GPU" has 'run r0004 is done' \
	go --RUN_GPU="slurm --gres=gpu:h200:1 -- $work/home/other"
ok "as told" same "srun --ntasks=1 --quiet --unbuffered --chdir=$work/home/other --gres=gpu:h200:1 .build/bin/far" \
	"$(sort -u "$work/said")"
ok "slurm: a word that is none" code 2 tools/runners/slurm -p 'a b'
echo 1 >"$work/trouble"
ok "slurm: no node now" code 75 go --RUN_GPU=slurm

rm "$work/trouble"
: >"$work/said"
cd "$root" || exit 1
mkdir -p "$work/stub"
printf '#!/bin/sh\nls -d Makefile stages/guard.c tools/far.c\necho "make $*"\n' >"$work/stub/make"
chmod +x "$work/stub/make"
if [ "$build" = "$root/.build" ]; then
	ok "ssh --install copies the programs" has 'installed in new:touch2' tools/runners/ssh --install new touch2
	ok "the very ones" cmp "$bin/judge" "$work/home/touch2/.build/bin/judge"
	cd "$work/tree" || exit 1
	ok "which then do a trial" has 'is done' go --RUN_GPU='ssh new touch2'
	ok "and need no pins of their own" not test -e "$(ls -d trials/runs/r* | tail -n 1)/pins.jsonl"
fi
cd "$root" || exit 1
ok "ssh --build copies the sources and makes them there" has 'make all' \
	env PATH="$work/stub:$PATH" tools/runners/ssh --build other3 touch3
ok "sources" test -s "$work/home/touch3/tools/make/build.mk" -a ! -e "$work/home/touch3/.build"
cd "$work/tree" || exit 1

echo 1 >"$work/trouble"
# a run that was begun on one machine goes on on another of the same kind
ok "a run whose machine is away stops" code 75 sh -c '"$1/iterate" --SPEC=vector_add --DEVICE=sim --N=1 --NEW=1 \
	--PROPOSER=sweep --RUN_GPU=loopback --RUN_UNITTEST=slurm' sh "$bin"
ok "and goes on with another one" has 'is done' "$bin/iterate" --resume --RUN_UNITTEST=loopback
finish
