#!/bin/sh
# t03-emu.sh - one emulated trial from compile to bench on a far side of its own, with no network and
# no git there: the chain holds here, and this machine judges it the same. A far side that changes a figure
# in a verdict it has signed is found by promote.
#
# SPDX-License-Identifier: MIT
. "$(dirname "$0")/lib.sh"
real_tree
second far
cat >"$work/away" <<END
#!/bin/sh
# Where namespaces can be had: no network, and a git that is nothing.
cd "$work/far" || exit 4
lonely() { unshare -nm sh -c 'mount --bind /dev/null "\$(command -v git)" && exec "\$@"' sh "\$@"; }
if lonely true 2>/dev/null; then
	echo lonely >"$work/how"
	lonely env -u TS_BIN .build/bin/far
else
	env -u TS_BIN .build/bin/far
fi
END
chmod +x "$work/away"
# a clear loser: its bench is over soon; confirmations by a runner are in t01 and t06
sed 's/a.f\[k\] += b.f\[k\];/{ for (int d = 0; d < 16; d++) a.f[k] += sqrtf(fabsf(a.f[k])) > 1e30f; & }/' specs/vector_add/baseline/kernel.cu >slow.cu
printf '#define BLOCK 256\n#define ITEMS 1\n#define VEC 1\n' >head
jq 'del(.tunables) | .launches[0].grid = ["ceil_div(N, 256)"] | .launches[0].block = [256]' \
	specs/vector_add/baseline/plan.json >plan.json
cat head slow.cu >k.cu
ok "one trial" "$bin/iterate" --try --SPEC=vector_add --DEVICE=emu --KERNEL=k.cu --PLAN=plan.json --RUN_GPU="$work/away"
ok "right by the far side's judge" same "pass ok" "$(jq -r '.verdict + " " + .reason.code' trials/0001/judge.json)"
if [ -s "$work/how" ]; then
	ok "without network and git there" same lonely "$(cat "$work/how")"
else
	ok "without network and git there # SKIP no namespaces" true
fi
ok "the chain holds" same "reject bench.slower" "$(jq -r '.verdict + " " + .reason.code' trials/0001/promote.json)"
ok "signed there, checked here" jq -e '.mac | length == 64' trials/0001/judge.json
ok "timed there: bench.raw gives the verdict again" "$bin/recheck" trials/0001/bench.json
ok "the A/A measurement that it rests on came along" sh -c '
	f=$(jq -r .data.aa.file trials/0001/bench.json)
	test "$(sha256sum <"$f" | cut -d" " -f1)" = "$(jq -r .data.aa.sha256 trials/0001/bench.json)" &&
	test "$(sha256sum <"${f%.json}.raw" | cut -d" " -f1)" = "$(jq -r .raw_sha256 "$f")"'
ok "this machine judges it the same" has agrees "$bin/replay" --TRIAL=0001
ok "the run key stayed here" same trials/runs/r0001/key "$(cd "$work/tree" && find . ../far/trials -name key | sed 's|^\./||')"
ok "nothing is left there" same "" "$(find "$work/far/trials" -type f ! -path '*/.lock/*')"
ok "its lane was the lane of that folder" test -e "$work/far/trials/.lock/lane-emu" -a ! -e trials/.lock/lane-emu

# Wrong, but at no shape that is public; nothing to tune. The courier between the machines changes what the judge there signed.
sed 's/a.f\[k\] += b.f\[k\];/a.f[k] += b.f[k] + (n != 1 \&\& n != 1037 \&\& n != 196608 \&\& n != 131109);/' specs/vector_add/baseline/kernel.cu >wrong.cu
cat head wrong.cu >w.cu
ok "a wrong kernel" "$bin/iterate" --try --SPEC=vector_add --DEVICE=emu --KERNEL=w.cu --PLAN=plan.json --RUN_GPU="$work/away"
ok "is rejected by the judge there" same "judge reject" \
	"$(jq -r '[.data.closed_by.step, .verdict] | join(" ")' trials/0002/promote.json)"
ok "and by the one here" has agrees "$bin/replay" --TRIAL=0002
cat >"$work/courier" <<END
#!/bin/sh
cat >"$work/in.tar"
"$work/away" <"$work/in.tar" >"$work/out.tar" || exit
target=\$(tar xOf "$work/in.tar" request.json | jq -r '.target // .do')
case \$target in *judge.json) ;; *) cat "$work/out.tar"; exit 0 ;; esac
rm -rf "$work/x"; mkdir "$work/x"; cd "$work/x" && tar xf "$work/out.tar" || exit 1
sed -i 's/"verdict": "reject"/"verdict": "inconclusive"/' "\$target"
tar cf - --format=ustar \$(find trials -type f)
END
chmod +x "$work/courier"
echo "// again" >>w.cu
ok "the same, and a courier that changes the verdict" \
	"$bin/iterate" --try --SPEC=vector_add --DEVICE=emu --KERNEL=w.cu --PLAN=plan.json --RUN_GPU="$work/courier"
ok "is found by the signature" same "invalid promote.mac" \
	"$(jq -r '.verdict + " " + .reason.code' trials/0003/promote.json)"
finish
