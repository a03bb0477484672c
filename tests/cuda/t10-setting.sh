#!/bin/sh
# t10-setting.sh - DEVICE, from the setting to the run: which GPU is chosen and what the banner says, what
# a run pins, which machine may go on with it, and what its GPUs cost.
#
# SPDX-License-Identifier: MIT
. "$(dirname "$0")/lib.sh"
need_nvrtc
fake_gpu FAKE_CUDA_GPUS=2
real_tree
MAKE=/bin/true # no step is run: what a run is made of is looked at
export MAKE
slug=fake-gpu-tests
iterate() { "$bin/iterate" --SPEC=vector_add --N=3 --PROPOSER=sweep "$@"; }
iterate --WIDTH=2 >"$work/banner" 2>&1
run=trials/runs/r0001

ok "a GPU is the default where one works" grep -q "vector_add on $slug," "$work/banner"
ok "the banner says which and why" \
	grep -q 'device    Fake GPU (tests) (sm_90a, driver [0-9.]*, CUDA 13.0): the best that works here' "$work/banner"
ok "and how many" grep -q 'lanes     2 GPUs: all free' "$work/banner"
ok "the run pins what the GPU is" same "$(jq -r .device_sha256 $run/run.json)" \
	"$(sha256sum $run/device.json | cut -c 1-64)"
ok "two lanes for two trials" grep -qx 'TS_G := 2' $run/ids.mk
ok "the third sees what the first left" same "$(jq -r '.device + " " + .timed_after' trials/0003/trial.json)" \
	"$slug 0001"
ok "both GPUs may serve it" same "$(jq -r '.gpus[].uuid[-1:]' $run/gpus.json | tr '\n' ' ')" "1 2 "

ok "propose runs, with the GPU's facts" "$bin/run" trials/0001/a0/propose.json
ok "its verdict names GPU, driver and toolkit" same \
	"$(jq -r '.device | .kind + " " + .class + " " + .name + " " + .driver + " " + (.toolkit | tostring)' \
		trials/0001/a0/propose.json | sed 's/ 1[23]\.[0-9]*$/ N/')" \
	"$slug cuda Fake GPU (tests) 580.159.04 N"
ok "and the very report that they come from" same "$(jq -r .inputs.device trials/0001/a0/propose.json)" \
	"$(jq -r .device_sha256 $run/run.json)"

ok "DEVICE=cuda goes on with it" has "resuming: 0 of 3" iterate --WIDTH=2 --DEVICE=cuda
ok "DEVICE=emu does not" code 2 iterate --WIDTH=2 --DEVICE=emu
ok "a GPU with another L2 does not, in words" has "l2_bytes is 4194304 here, 65536 in the run" \
	sh -c "sed -i '1i FAKE_CUDA_L2=4194304' '$work/gpu/fake.conf'; '$bin/iterate'"
ok "and with exit 4" code 4 "$bin/iterate"
printf '%s\n' FAKE_CUDA_GPUS=1 FAKE_CUDA_GRANULE=16384 FAKE_CUDA_L2=65536 >"$work/gpu/fake.conf"
ok "one GPU of the two is enough" has "lanes     1 GPU: free" "$bin/iterate"
ok "no driver: exit 4" code 4 env LD_LIBRARY_PATH= CUDA_VISIBLE_DEVICES= "$bin/iterate"
ok "no driver: a reason" has "no GPU here will do: " env LD_LIBRARY_PATH= CUDA_VISIBLE_DEVICES= "$bin/iterate"

cp $run/device.json "$work/device.json"
sed -i 's/"sm_count": 132/"sm_count": 264/' $run/device.json
ok "a changed device.json is noticed" has "changed after the run began" "$bin/run" trials/0001/a0/guard.json
cp "$work/device.json" $run/device.json

# The budget of GPU seconds is looked at before a step that needs one.
fresh() { iterate --NEW=1 "$@" >/dev/null 2>&1; }
fresh --MAX_GPU_S=5
echo '{"t":"2026-01-01T00:00:00.000Z","id":"x","kind":"settle","trial":"0004","what":"bench","calls":0,"tokens_in":0,
"tokens_out":0,"usd":0,"gpu_s":6,"total":{"calls":0,"tokens_in":0,"tokens_out":0,"usd":0,"gpu_s":6}}' |
	tr -d '\n' >trials/runs/r0002/ledger.jsonl
echo >>trials/runs/r0002/ledger.jsonl
ok "propose needs no GPU" "$bin/run" trials/0004/a0/propose.json
ok "bench does, and there is none left" has "budget max_gpu_s=5 of run r0002 is used up" \
	"$bin/run" trials/0004/bench.json

fresh --MAX_GPU_MINUTES=0.1
ok "minutes are the same budget" same "$(jq -r .settings.max_gpu_s trials/runs/r0003/run.json)" 6
for s in 1 3 2; do
	echo '{"t":"2026-01-01T00:00:00.000Z","id":"x'$s'","kind":"settle","trial":"0007","what":"bench","calls":0,"tokens_in":0,"tokens_out":0,"usd":0,"gpu_s":'$s',"total":{"calls":0,"tokens_in":0,"tokens_out":0,"usd":0,"gpu_s":5}}'
done >trials/runs/r0003/ledger.jsonl
ok "propose needs no GPU" "$bin/run" trials/0007/a0/propose.json
ok "bench does not fit: 5 are charged, and its like took 2 in the median" has \
	"budget max_gpu_s=6 of run r0003: 5 are charged, the next step may take 2" "$bin/run" trials/0007/bench.json
ok "nothing was reserved for it" same "$(grep -c reserve trials/runs/r0003/ledger.jsonl)" 0

ok "devices lists it" has "cuda  $slug: Fake GPU (tests), GPU 0  (default)" "$bin/status" --devices
ok "a namespace whose pids NVML does not know: others are unknown, not foreign" same \
	"$(FAKE_NVML_HIDE=1 FAKE_NVML_PIDS=4000001 "$bin/probe" devices | jq -c '.gpus[0] | [.sees, .others]')" "[0,-1]"
echo FAKE_CUDA_MODE=2 >>"$work/gpu/fake.conf"
ok "devices says why one cannot be used" has "not usable: its compute mode is prohibited" "$bin/status" --devices
fresh
ok "then emu is the default" same "$(jq -r .settings.device trials/runs/r0004/run.json)" emu
ok "and the run says why" has "no GPU is used: Fake GPU (tests) (GPU-fa4e0000-0000-4000-8000-000000000001) cannot be \
used: its compute mode is prohibited" jq -r .settings.device_why trials/runs/r0004/run.json
ok "DEVICE=cuda is refused with exit 4" code 4 iterate --NEW=1 --DEVICE=cuda
ok "no such GPU: exit 4" code 4 iterate --NEW=1 --DEVICE=nvidia-h200
ok "the one that is there is named" has "no GPU 'nvidia-h200' here; there is $slug" iterate --NEW=1 --DEVICE=nvidia-h200
finish
