#!/bin/sh
# t06-cuda.sh - a machine without a GPU proposes, one with a GPU (the fake one) compiles by NVRTC, judges and
# times: same graph, the GPU's facts pinned here, its lane held there.
#
# SPDX-License-Identifier: MIT
. "$(dirname "$0")/../cuda/lib.sh"
need_plain
need_nvrtc
fake_gpu
there=$LD_LIBRARY_PATH
unset LD_LIBRARY_PATH
fake_spec
mkdir -p "$work/far"
for part in Makefile tools stages prompts; do ln -s "$root/$part" "$work/far/$part"; done
ln -s "$build" "$work/far/.build"
printf '#!/bin/sh\ncd "%s/far" && LD_LIBRARY_PATH=%s exec env -u TS_BIN .build/bin/far\n' "$work" "$there" >"$work/gpuhost"
chmod +x "$work/gpuhost"

ok "no GPU here" code 4 "$bin/iterate" --SPEC=fake_add --DEVICE=cuda --PROPOSER=sweep --N=1
ok "one trial there" "$bin/iterate" --SPEC=fake_add --DEVICE=cuda --PROPOSER=sweep --N=1 --UNITTEST_DEVICE=none \
	--RUN_GPU="$work/gpuhost"
[ "${SHOW:-}" ] && cat "$work/.out"
ok "on the GPU's model" same fake-gpu-tests "$(jq -r .device trials/0001/trial.json)"
ok "whose facts are pinned here" same "$(sha256sum <trials/runs/r0001/device.json | cut -d' ' -f1)" \
	"$(jq -r .device_sha256 trials/runs/r0001/run.json)"
ok "the module came along" sh -c 'test "$(sha256sum <trials/0001/artefact/cuda-0 | cut -d" " -f1)" = \
	"$(jq -r ".outputs[\"artefact/cuda-0\"]" trials/0001/tune.json)"'
ok "judged on a card that has a name" jq -e '.device.uuid | startswith("GPU-")' trials/0001/judge.json
ok "the trial is closed, by its figures" test "$(jq -r .verdict trials/0001/promote.json)" != invalid
ok "the ticks recompute" "$bin/recheck" trials/0001/bench.json
ok "which GPUs there are is known there only" not test -e trials/runs/r0001/gpus.json
ok "the lane was held there" sh -c 'ls "$1"/far/trials/.lock/lane-GPU-* && test ! -e trials/.lock/lane-*' sh "$work"
ok "the driver was asked once for all steps" same 1 "$(ls "$work"/far/trials/.far/gpus-*.json | wc -l)"
ok "and nothing else is left there" same "" "$(find "$work/far/trials" -type f ! -path '*/.lock/*' ! -name 'gpus-*')"

# A run holds for a model, also behind a runner: what answers there may be another card tomorrow.
cat >"$work/flaky" <<END
#!/bin/sh
cat >"$work/in.tar"
tar xOf "$work/in.tar" request.json | grep -q step && exit 255
exec "$work/gpuhost" <"$work/in.tar"
END
chmod +x "$work/flaky"
TS_RETRIES=0
export TS_RETRIES
ok "a far side that breaks off stops the run" code 75 "$bin/iterate" --SPEC=fake_add --DEVICE=cuda --PROPOSER=sweep \
	--N=1 --UNITTEST_DEVICE=none --RUN_GPU="$work/flaky"
cp "$work/gpu/fake.conf" "$work/fake.conf"
echo FAKE_CUDA_L2=131072 | cat - "$work/fake.conf" >"$work/gpu/fake.conf"
ok "another card there: refused with what differs" has 'l2_bytes is 131072 here, 65536 in the run' \
	"$bin/iterate" --resume
echo FAKE_CUDA_GPUS=0 | cat - "$work/fake.conf" >"$work/gpu/fake.conf"
ok "none any more: said by the far side" has "by '$work/flaky': " "$bin/iterate" --resume
ok "it ends with 4" code 4 "$bin/iterate" --resume
cp "$work/fake.conf" "$work/gpu/fake.conf"
ok "the card of then, and another way to it: done" has 'run r0002 is done' "$bin/iterate" --resume \
	--RUN_GPU="$work/gpuhost"
finish
