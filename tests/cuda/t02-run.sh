#!/bin/sh
# t02-run.sh - a whole run on the fake GPU with the plain search: nothing to set up, the best one kept.
#
# SPDX-License-Identifier: MIT
. "$(dirname "$0")/lib.sh"
need_plain
need_nvrtc
fake_gpu
fake_spec

ok "one trial" "$bin/iterate" --SPEC=fake_add --DEVICE=cuda --PROPOSER=sweep --N=1 --UNITTEST_DEVICE=none
[ "${SHOW:-}" ] && cat "$work/.out"
ok "closed" same "$(ls trials/*/promote.json | wc -l)" 1
ok "on the GPU's model, not on a name that users type" same \
	"$(jq -r .device trials/000?/trial.json | sort -u)" fake-gpu-tests
best=$(jq -r 'select(.data.kept) | .data.ratio' trials/*/promote.json | tail -n 1)
ok "something faster was kept" test -L champion/fake_add/fake-gpu-tests
ok "by about what it waits less (300 us to 100)" awk "BEGIN { exit !($best > 1.2 && $best < 3.2) }"
ok "the record says which GPU it was" has "Fake GPU (tests)" cat trials/runs/r0001/device.json
ok "the report is made" "$bin/render"
finish
