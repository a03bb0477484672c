#!/bin/sh
# t21-profile.sh - a kept candidate under a profiler, and without one: bare, ncu's table, the next prompt.
#
# The profiler is a script that runs what it is given on the fake GPU and writes a table as ncu does.
#
# SPDX-License-Identifier: MIT
. "$(dirname "$0")/lib.sh"
need_plain
need_nvrtc
fake_gpu
fake_spec
candidate "$work/good" add_good 100

cat >"$work/ncu" <<'EOF'
#!/bin/sh
while [ $# -gt 3 ]; do
	case $1 in --log-file) log=$2 ;; --metrics) metrics=$2 ;; esac
	shift
done
echo "$metrics" >"$(dirname "$0")/metrics"
[ -f "$(dirname "$0")/refuse" ] && { echo "==ERROR== ERR_NVGPUCTRPERM - no permission" >"$log"; exit 1; }
"$@" || { echo "==ERROR== the program ended with $?" >"$log"; exit 1; }
cat >"$log" <<END
==PROF== Connected to process 1
"ID","Kernel Name","gpu__time_duration.sum","dram__bytes_read.sum"
"","","ns","byte"
"0","add_good","1,234","56"
END
EOF
chmod +x "$work/ncu"

ok "a candidate is kept" has "KEPT" "$bin/iterate" --try --SPEC=fake_add --DEVICE=cuda \
	--KERNEL="$work/good/kernel.cu" --PLAN="$work/good/plan.json"
NCU=$work/none; export NCU
ok "no profiler: said, and no failure" has "profile unavailable: Nsight Compute (ncu) is not installed" \
	"$bin/profile" --TRIAL=0001
ok "and on record" same "$(jq -r '.available, .why' trials/0001/profile.json | tr '\n' ' ')" \
	"false Nsight Compute (ncu) is not installed "
NCU=$work/ncu
: >"$work/refuse"
ok "no permission" has "profile unavailable: ERR_NVGPUCTRPERM - no permission" "$bin/profile" --TRIAL=0001
rm "$work/refuse"
ok "a profile" has "ncu, add_good: 1234 ns under the profiler, DRAM read 56.0 bytes" "$bin/profile" --TRIAL=0001
ok "a dozen metrics were asked for" same "$(tr ',' '\n' <"$work/metrics" | sort -u | wc -l)" 12
ok "the launches ran" same "$(jq -r '.workloads[0].launches[0].time_ns' trials/0001/profile.json)" 1234
ok "beside the champion's evidence" cmp trials/0001/profile.json \
	champion/fake_add/fake-gpu-tests/evidence/profile.json
ok "the next trial is proposed" "$bin/iterate" --SPEC=fake_add --DEVICE=cuda --PROPOSER=command \
	--COMMAND=false --N=1
ok "and its prompt says it" has "ncu, add_good: 1234 ns" cat trials/0002/a0/prompt.md
ok "a trial that was not kept is not run" code 3 "$bin/profile" --TRIAL=0002
size=$(jq -r '.workloads.public[0].name' specs/fake_add/spec.json)
printf X | dd of=trials/0001/artefact/cuda-0 bs=1 seek=100 conv=notrunc 2>/dev/null
ok "what was not judged is not run unconfined" has "its sha256 differs" "$bin/bare" 0001 "$size"
ok "bare says what it cannot do" code 3 "$bin/bare" 0001 nothing
finish
