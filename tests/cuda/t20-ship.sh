#!/bin/sh
# t20-ship.sh - what is shipped of a run on a GPU, fake here: start/ apart from what was found, machine code,
# the profile, libraries beside it; judged again where nothing but the repository is.
#
# SPDX-License-Identifier: MIT
. "$(dirname "$0")/lib.sh"
need_nvrtc
need_plain
fake_gpu FAKE_CUDA_GRANULE=65536 FAKE_CUDA_L2=262144
fake_spec
cp -r specs/fake_add/baseline specs/fake_add/start
sed -i 's/"value": 300/"value": 200/; s/\[100, 200, 300, 400\]/[100, 200]/' specs/fake_add/start/plan.json
sed -i 's/"value": 300/"value": 400/' specs/fake_add/baseline/plan.json
jq '.start = "start"' specs/fake_add/spec.json >t && mv t specs/fake_add/spec.json
cp -r specs "$work/specs"
ok "a run of two: start/ and one more" has 'run r0001 is done' make iterate SPEC=fake_add DEVICE=cuda PROPOSER=sweep N=2
ok "both are kept" same 2 "$(jq -s 'map(select(.kept)) | length' trials/log.jsonl)"
own=champion/fake_add/.v/fake-gpu-tests
ok "the champion's own page knows start/" grep -q '^- start/ by itself, no work of the loop, against the baseline: [12]\.' $own-0002/README.md
ok "and what was found" grep -q '^- found by the loop beyond start/: 1\.[3-9]' $own-0002/README.md
ok "start/ itself was not found" grep -q 'this is start/ itself' $own-0001/README.md
for rival in slow:500 fast:300; do
	echo "{\"spec\": \"fake_add\", \"workload\": \"plain\", \"gpu\": \"Fake GPU (tests)\", \"rival\": \"${rival%:*}\", \"cold_us\": ${rival#*:}}"
done >reports/compare-1.jsonl
evidence=$own-0002/evidence
echo short >$evidence/cuda-8.sass
head -c 300000 /dev/zero | tr '\0' s >$evidence/cuda-9.sass
mv "$work/tree" "$work/maker"
real_tree
rm specs && mv "$work/specs" specs
here=champion/shipped/fake-gpu-tests/fake_add
ok "ship takes it" has "$here: trial 0002" make ship DEVICE=fake-gpu-tests FROM="$work/maker"
ok "the page has start/ by itself" grep -q '^- `start/` as it is shipped, no work of the loop: [12]\.' $here/README.md
ok "and what was found beyond it" grep -q '^- found by the loop beyond `start/`: 1\.[3-9]' $here/README.md
ok "and the time of a run" grep -q '^| plain | [0-9.]* us |' $here/README.md
ok "both trials are in the record" same 2 "$(find $here/record -name promote.json | wc -l)"
ok "with machine code and PTX" test -s $here/record/trials/0002/artefact/cuda-0 -a -s $here/record/trials/0002/artefact/cuda-0.ptx
ok "a short text of it as it is" same short "$(cat $here/code/cuda-8.sass)"
ok "a long one packed" same 300000 "$(gzip -dc $here/code/cuda-9.sass.gz | wc -c)"
ok "and the device" test -s $here/record/trials/runs/r0001/device.json
ok "the libraries came along" same 2 "$(wc -l <reports/shipped/fake-gpu-tests/compare.jsonl)"
page=reports/shipped/fake-gpu-tests/index.html
ok "the report tells start/ and found apart" grep -q 'Found by the loop, beyond start/<b>1\.' $page
ok "it has the fastest library" grep -q '<span class=dim>fast, 300.0' $page
ok "and calls nothing emulated" not grep -qi emulated $page
ok "the table has all of it" has '| `fake_add` |' tools/ship --table fake-gpu-tests
ok "and the library" has 'x of fast |' tools/ship --table fake-gpu-tests
ok "replay agrees" has agrees make replay FROM=$here
ok "on the same image" has 'cuda-0: the same bytes' make replay FROM=$here
ok "of start/ too" has agrees make replay FROM=$here TRIAL=0001
echo FAKE_CUDA_GPUS=0 >"$work/gpu/fake.conf"
ok "without that GPU it says so" has "was judged on a Fake GPU" make replay FROM=$here
ok "the chain needs no GPU" has '1 shipped champions, 0 of them' tools/ship --check
printf x | dd of=$here/record/trials/0002/artefact/cuda-0 bs=1 seek=90 conv=notrunc 2>/dev/null
ok "a touched image is seen" has 'artefact/cuda-0 is another' tools/ship --check
finish
