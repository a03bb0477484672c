#!/bin/sh
# Floating point that is not IEEE 754 is found out: by compiler flags, by the state of the process.
# SPDX-License-Identifier: MIT
. "$(dirname "$0")/../lib.sh"
cd "$root" || exit 1
cc=${CC:-gcc}
command -v gcc >/dev/null || skip_all "no gcc here"

cat >"$work/main.c" <<'END'
#include "ieee.h"
#include <fenv.h>
#include <stdio.h>
#ifdef __SSE2__
#include <xmmintrin.h>
#endif
int main(int argc, char **argv)
{
	(void)argv;
#ifdef __SSE2__
	if (argc == 2)
		_mm_setcsr(_mm_getcsr() | 0x8000u);
	if (argc == 3)
		_mm_setcsr(_mm_getcsr() | 0x0040u);
#endif
	if (argc == 4)
		fesetround(FE_DOWNWARD);
	const char *why = ieee_broken();
	puts(why ? why : "fine");
	return 0;
}
END
# says WORDS FLAGS...: what a build with FLAGS says of itself
says() {
	says_words=$1
	shift
	"$cc" -std=c11 -D_GNU_SOURCE -Istages/lib "$@" -o "$work/a" stages/lib/ieee.c "$work/main.c" -lm || return 1
	has "$says_words" "$work/a"
}

for flags in -O0 -O2 -O3 "-O2 -flto" "-O2 -march=native"; do
	# shellcheck disable=SC2086
	ok "$flags is fine" says fine $flags
done
ok "-ffast-math: a NaN is nothing there" says "NaN" -O2 -ffast-math
ok "-Ofast" says "NaN" -Ofast
ok "-ffinite-math-only" says "NaN" -O2 -ffinite-math-only
ok "-fno-signed-zeros" says "sign of zero" -O2 -fno-signed-zeros
ok "-freciprocal-math" says "reciprocal" -O2 -freciprocal-math
case $(uname -m) in x86_64)
	ok "x87 keeps more digits" says "more digits" -O2 -mfpmath=387
	ok "contraction into fused sums" says "contracted" -O2 -march=haswell -ffp-contract=fast
	says fine -O2
	ok "results flushed to zero" has FTZ "$work/a" 1
	ok "operands taken for zero" has DAZ "$work/a" 1 2
	;;
esac
says fine -O2
ok "another rounding" has rounding "$work/a" 1 2 3

# A library built with -ffast-math sets the state of every process that it is loaded into.
case $build in *-san) finish; exit ;; esac
echo 'int fast(void) { return 1; }' >"$work/fast.c"
gcc -shared -fPIC -ffast-math -o "$work/fast.so" "$work/fast.c"
says fine -O2
if has fine env LD_PRELOAD="$work/fast.so" "$work/a" >/dev/null; then
	echo "# this compiler's -ffast-math libraries leave the process alone"
else
	stage() { LD_PRELOAD=$work/fast.so "$build/bin/$1" trials/0001/"$2".json; }
	ok "a stage does not start so" has "does not follow IEEE 754" stage judge judge
	ok "and ends as our fault" code 70 stage bench confirm
	ok "the self-test fails of it" has "FAIL  ieee" env LD_PRELOAD="$work/fast.so" "$build/bin/selftest" --DEVICE=emu
fi
finish
