# lib.sh - what the pipeline specimens (run.sh) of the zoo share. Source it first: . "$ZOO_LIB"
#
# A run.sh is run by /bin/sh in a tree of its own: the real programs and problems linked (as tests/lib.sh's
# real_tree), no trials yet. Everything it writes goes below the working directory, which is removed.
# Its last line of output is the reason code with which it was refused, or `through` when it was not, and its
# exit code is 0 either way; any other is a failure, with the end of its output shown. So it ends with
# `refused_at STEP`, or prints for itself.
#
#   ZOO_DIR     the specimen's folder          ZOO_BUILD   .build, or .build-zoo with TS_OFF set
#   $bin        the programs                   $root       the repository
#
# SPDX-License-Identifier: MIT
set -u
root=$(cd "$(dirname "$ZOO_LIB")/../.." && pwd)
bin=$ZOO_BUILD/bin
id=0001

broken() { # broken WORDS: the specimen itself does not work
	echo "broken: $*"
	exit 1
}

# iterate ARGS...: a run; its words in ./iterate.log. ZOO_STOP=STEP ends it behind that step
# (propose guard unittest tune judge bench confirm promote); leaves the newest trial in $id.
iterate() {
	MAKE=${ZOO_MAKE:-$root/tests/zoo/steps} ZOO_STOP=${ZOO_STOP:-promote} "$bin/iterate" "$@" \
		>iterate.log 2>&1 </dev/null
	iterate_code=$?
	newest
	return $iterate_code
}

newest() {
	for newest_dir in trials/[0-9]*/; do
		[ -d "$newest_dir" ] && id=$(basename "$newest_dir")
	done
}

# reply FILE [ARGS...]: one trial of a recorded reply (text of a model), on sim: nothing is compiled or run.
# ZOO_STOP as above (default propose).
reply() {
	reply_file=$1
	shift
	ZOO_STOP=${ZOO_STOP:-propose}
	iterate --NEW=1 --SPEC="${ZOO_SPEC:-vector_add}" --DEVICE="${ZOO_ON:-sim}" --PROPOSER=replay \
		--REPLY="$reply_file" --N=1 "$@"
}

# try KERNEL PLAN [ARGS...]: one trial of two files, as `make try`.
try() {
	try_kernel=$1 try_plan=$2
	shift 2
	iterate --try --NEW=1 --SPEC="${ZOO_SPEC:-vector_add}" --DEVICE="${ZOO_ON:-sim}" \
		--KERNEL="$try_kernel" --PLAN="$try_plan" "$@"
}

# good_run [ARGS...]: a whole trial of the baseline on sim that is kept: a record to tamper with.
good_run() {
	ZOO_STOP=promote try "$root/specs/vector_add/baseline/kernel.cu" "$root/specs/vector_add/baseline/plan.json" "$@"
	[ "$(verdict promote)" = pass ] || broken "the baseline is not kept: $(tail -n 3 iterate.log)"
}

# again STEP: the trial's verdict of STEP is made anew (its file removed first); 0 when one is there.
again() {
	again_file=$(step_file "$1")
	rm -f "$again_file"
	"$bin/run" "$again_file" >>step.log 2>&1 </dev/null
}

step_file() {
	case $1 in
	propose | guard | unittest) echo "trials/$id/a0/$1.json" ;;
	*) echo "trials/$id/$1.json" ;;
	esac
}
verdict() { jq -r .verdict "$(step_file "$1")" 2>/dev/null || echo none; }
code() { jq -r .reason.code "$(step_file "$1")" 2>/dev/null || echo none; }

# refused_at STEP: prints the code if STEP says no, `through` if it says yes, and ends the specimen.
refused_at() {
	case $(verdict "$1") in
	pass | na) echo through ;;
	reject | inconclusive | invalid) code "$1" ;;
	skip) broken "stopped before $1: $(jq -r '.reason.message' "$(step_file "$1")")" ;;
	*) broken "no verdict of $1: $(tail -n 3 iterate.log step.log 2>/dev/null)" ;;
	esac
	exit 0
}
