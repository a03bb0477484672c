#!/bin/sh
# t23-sanitizer.sh - compute-sanitizer as an extra of unittest: a finding rejects, other words are noted, none is no trouble.
#
# The tool is a script that runs what it is given on the fake GPU and says what its file says, as the tool does.
#
# SPDX-License-Identifier: MIT
. "$(dirname "$0")/lib.sh"
need_plain
need_nvrtc
fake_gpu
fake_spec
mkdir -p "$work/tool/say"
chmod -R a+rX "$work/tool"
cat >"$work/tool/sanitizer" <<'EOF2'
#!/bin/sh
here=$(dirname "$0")
tool=$2
while [ "$1" != all ]; do shift; done
shift
echo "========= COMPUTE-SANITIZER"
"$@" || { echo "========= Error: the program ended with $?"; exit 1; }
if [ -f "$here/say/$tool" ]; then cat "$here/say/$tool"; else echo "========= ERROR SUMMARY: 0 errors"; fi
EOF2
chmod +x "$work/tool/sanitizer"
# Another candidate each time: what was tried is a duplicate. The first is kept, the others lose at once.
us=0
try() {
	us=$((us + 100))
	candidate "$work/good" add_good $us
	sed -i "s/\"values\": \[[^]]*\]/\"values\": [$us]/" "$work/good/plan.json"
	one "$@"
}
one() { "$bin/iterate" --try --SPEC=fake_add --DEVICE=cuda --KERNEL="$work/good/kernel.cu" --PLAN="$work/good/plan.json" "$@"; }
unit() { cat "trials/$1/a0/unittest.json"; }

COMPUTE_SANITIZER=$work/none; export COMPUTE_SANITIZER
ok "without it: said, and on" has KEPT try --SANITIZER=1
ok "on record" has 'unavailable: compute-sanitizer is not installed' unit 0001
COMPUTE_SANITIZER=$work/tool/sanitizer
ok "not asked for, not run" try
ok "nor mentioned" not grep -q compute_sanitizer trials/0002/a0/unittest.json
ok "nothing found" try --SANITIZER=1
ok "on record" has '"no findings"' unit 0003
ok "three tools looked: there are no workspaces" same 3 "$(grep -c '^compute-sanitizer [a-z]*: 0 findings' trials/0003/a0/unittest.log)"
cat >"$work/tool/say/racecheck" <<'EOF2'
========= Error: Race reported between Write access at add_good(const float *, float *)+0x100
=========     and Read access at add_good(const float *, float *)+0x180 [12 hazards]
=========
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
EOF2
ok "a hazard is noted" try --SANITIZER=1
ok "in words" has 'racecheck: 1 findings, the first: Error: Race reported between Write access' unit 0004
ok "and does not reject" same pass "$(unit 0004 | jq -r .verdict)"
cat >"$work/tool/say/memcheck" <<'EOF2'
========= Program hit CUDA_ERROR_NOT_SUPPORTED (error 801) due to "operation not supported" on CUDA API call to cuFoo.
=========     Saved host backtrace up to driver entry point at error
=========
========= ERROR SUMMARY: 1 error
EOF2
ok "a failed call is no access" try --SANITIZER=1
ok "so it passes" same pass "$(unit 0005 | jq -r .verdict)"
cat >"$work/tool/say/memcheck" <<'EOF2'
========= Invalid __global__ read of size 16 bytes
=========     at add_good(const float *, float *)+0x70
=========     by thread (31,0,0) in block (0,0,0)
=========     Access at 0x7f0000000200 is out of bounds
=========
========= ERROR SUMMARY: 1 error
EOF2
ok "an access out of bounds is the end" try --SANITIZER=1
ok "by its code" same unittest.sanitizer "$(unit 0006 | jq -r .reason.code)"
ok "with the place" has 'Invalid __global__ read of size 16 bytes at add_good' unit 0006
echo "========= Internal Sanitizer Error" >"$work/tool/say/memcheck"
ok "a tool that breaks is no verdict" try --SANITIZER=1
ok "but a note" has 'unavailable: memcheck ended with' unit 0007
ok "of a trial that passed here" same pass "$(unit 0007 | jq -r .verdict)"
ok "the setting is 1 or nothing" code 2 one --SANITIZER=2
finish
