#!/bin/sh
# t07-gpu.sh - the programs behind gpu.py, on the fake driver and the fake cuBLAS: the same logits as on the processor.
#
# SPDX-License-Identifier: MIT
. "$(dirname "$0")/../cuda/lib.sh"
cd "$work" || exit 1
program() {
	${CC:-cc} -std=gnu11 -g -O1 -Wall -Wextra -Werror -I"$root/stages/lib" "$root/tests/engine/$1.c" "$build/lib.a" -lcjson \
		-lcrypto -lseccomp -lm -ldl -lpthread -o "$1"
}
need_plain
need_nvrtc
ok "logits builds" program logits
ok "replay_time builds" program replay_time
# The box that compiles the kernels is looked for beside the program.
mkdir -p .build/bin stages && ln -s "$build"/bin/* .build/bin && ln -s "$root/stages/gpu" stages/gpu && mv logits replay_time .build/bin
bin=.build/bin
ok "a checkpoint" "$bin/make-checkpoint" tiny model
printf '\001\000\000\000\002\001\000\000\003\000\000\000\004\001\000\000\005\000\000\000' >ids
ok "no GPU: exit 4" code 4 env LD_LIBRARY_PATH= CUDA_VISIBLE_DEVICES= "$bin/logits" model ids out fp32 gpu
fake_gpu
cp "$fake/libcublas.so.13" "$work/gpu"
for policy in fp32 bf16; do
	ok "$policy on the processor" "$bin/logits" model ids a.$policy $policy
	ok "$policy on the GPU" "$bin/logits" model ids b.$policy $policy gpu
done
# float32 differs in the order of sums, in the last digits; 5 places of 512 logits.
apart() {
	od -An -v -tf4 -w4 "$1" >a.txt && od -An -v -tf4 -w4 "$2" >b.txt &&
		paste a.txt b.txt | awk '{ d = $1 - $2; if (d < 0) d = -d; if (d > most) most = d } END { exit !(NR == 2560 && most < 1e-4) }'
}
ok "float32: the same to rounding" apart a.fp32 b.fp32
ok "bfloat16: the same to rounding" apart a.bf16 b.bf16
ok "and the two are not the same" sh -c '! cmp -s a.fp32 a.bf16'
"$bin/replay_time" model 2/10/32 1/9/33 >times.txt
ok "replays are timed" test "$(jq -s 'length == 4 and .[0].weight_bytes == 558720 and .[1].own.argmax_rate == 1 and
	.[1].nobody.mean > 1 and .[1].margin >= 0.25 and .[3].tokens_judged == 97' times.txt)" = true
finish
