# inputs.sh - sourced by t15 and t16 after ../lib.sh: `inputs RUN_DIR TRIAL STAGE` (inputs.c).
# SPDX-License-Identifier: MIT
inputs_program=$build/test/inputs.$$
${CC:-cc} -std=c11 -D_GNU_SOURCE -I"$root/stages/lib" -o "$inputs_program" "$root/tests/pipeline/inputs.c" \
	"$build/lib.a" -Wl,--gc-sections -lcjson -lcrypto $(ls /usr/include/seccomp.h >/dev/null 2>&1 && echo -lseccomp) \
	-lm -ldl -lpthread $(case $build in *-san) echo -fsanitize=address,undefined ;; esac) || exit 1
trap 'rm -f "$inputs_program"; cleanup' EXIT
inputs() { "$inputs_program" "$@"; }
