#!/bin/sh
# SPDX-License-Identifier: MIT
# Everything the evidence file holds, in the order it holds it. Needs an sm_90a GPU, its driver and NVRTC. Usage: all.sh [WORKDIR [cache+drift]]
cd "$(dirname "$0")" || exit 111
work=${1:-$(mktemp -d)}
mkdir -p "$work" || exit 111
export LD_LIBRARY_PATH="${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}/usr/local/cuda/lib64"
step() { echo "== $*"; timeout 150 "$@" 2>&1; rc=$?; [ $rc = 0 ] || echo "exit $rc"; }

# Does NVRTC reuse what an earlier process compiled?
cache() {
	step "$work/run" --no-cache --shape 300,72,40 GROUP=16
	step "$work/run" --no-cache --shape 300,72,40 GROUP=16
	step "$work/run" --shape 300,72,40 GROUP=16
	step "$work/run" --no-cache --shape 300,72,40 GROUP=16
	step env CUDA_CACHE_DISABLE=1 "$work/run" --shape 300,72,40
	step sh -c 'find "$HOME/.nv" -type f | sed "s,$HOME,~,"; ldconfig -p | grep -c "libcuda.so.1"'
}

# Short and long series of the same launch, with the clock watched: a long series meets the power limit.
drift() {
	nvidia-smi --query-gpu=clocks.sm,power.draw,clocks_event_reasons.active --format=csv,noheader -lms 20 > "$work/clocks" 2>&1 &
	smi=$!
	for r in 40 300 40 1000; do
		step "$work/run" --reps $r --shape 4096,4096,4096
		step python3 torch_ref.py 4096,4096,4096
		sleep 1
	done
	kill $smi
	echo "== SM clock, power, reasons during these (busy samples, counted)"
	awk -F', ' '$2 + 0 > 250 {n[$1 ", reasons " $3]++} END {for (k in n) print n[k], k}' "$work/clocks" | sort -rn | head -20
	sort -t, -k2 -n "$work/clocks" | awk -F', ' '$2 + 0 > m {m = $2 + 0} END {print "most power seen: " m " W"}'
}

date -u '+%Y-%m-%d %H:%M UTC'
step nvidia-smi --query-gpu=name,driver_version,vbios_version,clocks.sm,clocks.mem,power.draw,ecc.mode.current,mig.mode.current --format=csv
step cc -O2 -std=gnu11 -o "$work/run" run.c -ldl -lm
[ -x "$work/run" ] || exit 111
case $2 in cache+drift) cache; drift; exit ;; esac
step "$work/run" --shape 300,72,40 CLUSTER=1 STAGES=3
step "$work/run" --shape 300,72,40
step "$work/run"
step python3 torch_ref.py
step "$work/run" --shape 4096,4096,4096 CLUSTER=1
cache
step "$work/run" --facts --shape 4096,4096,4096
step "$work/run" --errors --shape 4096,4096,4096
step "$work/run" --sweep --shape 4096,4096,4096 BM=128
step "$work/run" --sweep --shape 1000,1016,520 GROUP=8 STAGES=4
drift
nvcc -gencode=arch=compute_90a,code=sm_90a -cubin -DBM=128 -DBN=256 -DBK=64 -DSTAGES=4 -DCLUSTER=2 -DGROUP=8 -o "$work/k.cubin" kernel.cu &&
	cuobjdump -sass "$work/k.cubin" > "$work/sass"
echo "== SASS of gemm: opcodes and special registers"
sed -n '/Function : gemm$/,/Function : /p' "$work/sass" | grep -oE '(HGMMA|UTMALDG|UTMASTG|SYNCS|STSM|USETMAXREG|UCGABAR|LDL|STL|WARPGROUP|LDC|ULDC|FENCE|MEMBAR)[A-Za-z0-9_.]*' |
	sort | uniq -c | sort -rn | head -60
grep -oE 'S2U?R [UR0-9]+, SR_[A-Za-z0-9_.]+|CS2R[.0-9]* R[0-9]+, SR_[A-Z]+' "$work/sass" | grep -oE 'SR_.*' | sort | uniq -c
echo "== the machine"
step sh -c 'gcc --version | head -1; make --version | head -1; jq --version; git --version; curl --version | head -1; openssl version; ldd --version | head -1'
step sh -c 'for h in curl/curl.h openssl/evp.h cjson/cJSON.h seccomp.h cmocka.h linux/landlock.h; do find /usr/include -path "*/$h" | grep . || echo "no $h"; done'
