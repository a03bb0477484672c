#!/bin/sh
# t01-devices.sh - which GPUs are found, which of them may be used, and in which words not.
#
# SPDX-License-Identifier: MIT
. "$(dirname "$0")/lib.sh"
fake_gpu

gpus() { "$bin/probe" devices | jq -r "$1"; }
none() { LD_LIBRARY_PATH='' CUDA_VISIBLE_DEVICES='' "$bin/probe" devices | jq -r .why; }

ok "one GPU, named as what it is" same "$(gpus '.gpus[0].name')" "Fake GPU (tests)"
ok "its slug" same "$(gpus '.gpus[0].slug')" fake-gpu-tests
ok "it can be used" same "$(gpus '.gpus[0].usable')" 1
ok "what to compile for" same "$(gpus '.gpus[0].arch')" sm_90a
ok "clusters of each size" same "$(gpus '.gpus[0].clusters | [.[1], .[2], .[4], .[8], .[16]] | join(" ")')" "132 66 30 15 7"
ok "two of them" same "$(FAKE_CUDA_GPUS=2 gpus '[.gpus[].uuid[-1:]] | join(" ")')" "1 2"
ok "none: a reason" same "$(FAKE_CUDA_GPUS=0 gpus '.gpus | length')" 0
ok "none: in words" not same "$(FAKE_CUDA_GPUS=0 gpus .why)" ""
ok "no driver, or one that sees nothing: a reason" has "CUDA driver" none
ok "a driver that does not start" has CUDA_ERROR_SYSTEM_NOT_READY env FAKE_CUDA_INIT=802 "$bin/probe" devices
ok "a driver that is too old" has 12.3 env FAKE_CUDA_VERSION=12030 "$bin/probe" devices

unusable() { has '"usable":0' env "$1" "$bin/probe" devices; }
ok "prohibited: not usable" unusable FAKE_CUDA_MODE=2
ok "exclusive to one process: not usable" unusable FAKE_CUDA_MODE=3
ok "served by MPS: not usable" unusable FAKE_CUDA_MPS=1
ok "an instance: a slug of its own" has -mig env FAKE_CUDA_MIG=1 "$bin/probe" devices

uuid=GPU-fa4e0000-0000-4000-8000-000000000001
state() { "$bin/probe" state $uuid | jq -r "$1"; }
ok "state: clock" same "$(FAKE_NVML_SM_MHZ=1200 state .sm_mhz)" 1200
ok "state: throttling" same "$(FAKE_NVML_REASONS=4 state .throttle_reasons)" 4
# -1, not known: others of this build are at work that NVML does not list (suites run side by side)
ok "state: nobody else computes" same "$(state 'if .foreign > 0 then "somebody" else "nobody" end')" nobody
sleep 60 &
other=$!
ok "state: somebody else does" same "$(FAKE_NVML_PIDS=$other state '"\(.foreign) \(.foreign_pid)"')" "1 $other"
kill $other
ok "state: something draws" same "$(FAKE_NVML_GRAPHICS=1 state .graphics)" 1
ok "state: no such GPU is exit 4" code 4 "$bin/probe" state GPU-00000000-0000-0000-0000-000000000000
finish
