#!/bin/sh
# entries.sh FILE.cu - write the unit that g++ compiles for the fake driver: prefix, kernel, its entries,
# suffix. An entry is every `extern "C" __global__ void NAME(` after the preprocessor.
#
# SPDX-License-Identifier: MIT
set -eu
names=$(g++ -E -x c++ -P -nostdinc -DFAKE_CUDA_HOST "$1" 2>/dev/null | tr '\n\t' '  ' |
	sed 's/__launch_bounds__ *([^()]*)//g; s/__global__/\n&/g' |
	sed -n 's/^__global__ *void *\([A-Za-z0-9_]*\) *(.*/\1/p')
case $1 in /*) file=$1 ;; *) file=$(pwd)/$1 ;; esac
echo '#include "emu_prefix.h"'
echo "#include \"$(cd "$(dirname "$0")" && pwd)/kernels/host_cuda.h\""
echo "#include \"$file\""
printf '#define EMU_ENTRIES'
for n in $names; do printf ' EMU_ENTRY(%s)' "$n"; done
echo
echo '#include "emu_suffix.h"'
