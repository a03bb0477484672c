# lib.sh - what the tests of the GPU path share: tests/lib.sh and the fake driver.
#
# SPDX-License-Identifier: MIT
. "$(dirname "$0")/../lib.sh"

bin=$build/bin
fake=$build/test/fake/cuda

# fake_gpu [NAME=VALUE...]: from now on this host has a GPU. Settings reach every process, also those with
# an environment of their own.
fake_gpu() {
	[ -f "$fake/libcuda.so.1" ] || skip_all "no fake driver in $fake"
	mkdir -p "$work/gpu"
	cp "$fake/libcuda.so.1" "$fake/libnvidia-ml.so.1" "$work/gpu"
	for setting; do echo "$setting"; done >"$work/gpu/fake.conf"
	LD_LIBRARY_PATH=$work/gpu
	export LD_LIBRARY_PATH
}

need_nvrtc() {
	for f in /usr/local/cuda/lib64/libnvrtc.so.1? /usr/lib/*/libnvrtc.so.1?; do
		[ -f "$f" ] && return
	done
	skip_all "no NVRTC on this machine: nothing here can compile for a GPU"
}
