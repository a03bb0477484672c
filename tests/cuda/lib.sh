# lib.sh - what the tests of the GPU path share: tests/lib.sh and the fake driver.
#
# SPDX-License-Identifier: MIT
. "$(dirname "$0")/../lib.sh"

bin=$build/bin
fake=$build/test/fake/cuda

# Workers share fixed addresses, which a sanitizer keeps for itself.
need_plain() {
	case $build in *-san) skip_all "programs with sanitizers cannot map the addresses that workers share" ;; esac
}

# fake_gpu [NAME=VALUE...]: from now on this host has a GPU. Settings reach every process, also those with
# an environment of their own.
fake_gpu() {
	[ -f "$fake/libcuda.so.1" ] || skip_all "no fake driver in $fake"
	need_plain
	mkdir -p "$work/gpu"
	cp "$fake/libcuda.so.1" "$fake/libnvidia-ml.so.1" "$work/gpu"
	# the first of a name counts; small granules and a small cache make reps cheap
	for setting in "$@" FAKE_CUDA_GRANULE=16384 FAKE_CUDA_L2=65536; do echo "$setting"; done >"$work/gpu/fake.conf"
	LD_LIBRARY_PATH=$work/gpu
	export LD_LIBRARY_PATH
}

need_nvrtc() {
	for f in /usr/local/cuda/lib64/libnvrtc.so.1? /usr/lib/*/libnvrtc.so.1?; do
		[ -f "$f" ] && return
	done
	skip_all "no NVRTC on this machine: nothing here can compile for a GPU"
}

# fake_spec: a tree with the real programs, and one problem that the fake GPU has kernels for.
fake_spec() {
	real_tree
	rm specs
	mkdir specs
	cp -r "$root/tests/fake/cuda/fake_add" specs/
}

# one_kernel ENTRY: of kernels/add.cu what that kernel needs, so that no other one's variables are there.
one_kernel() {
	awk -v want="$1" '
		/^ENTRY\(/ { mine = $0 == "ENTRY(" want ")"; inside = 1 }
		!inside && /^__device__/ { name = $3; sub(/;/, "", name); variable[name] = $0; next }
		!inside { head = head $0 "\n" }
		inside && mine { body = body $0 "\n" }
		inside && /^}/ { inside = 0 }
		END {
			printf "%s", head
			for (v in variable) if (index(body, v)) print variable[v]
			printf "%s", body
		}' "$root/tests/fake/cuda/kernels/add.cu"
}

# candidate DIR ENTRY [US]: kernel and plan of a candidate, as the command and replay proposers take them.
candidate() {
	mkdir -p "$1"
	one_kernel "$2" >"$1/kernel.cu"
	sed "s/add_good/$2/; s/\"value\": 300/\"value\": ${3:-300}/" \
		"$root/tests/fake/cuda/fake_add/baseline/plan.json" >"$1/plan.json"
}

# fixed DIR ENTRY US: the same without tunables, so that nothing changes how long it takes.
fixed() {
	mkdir -p "$1"
	one_kernel "$2" >"$1/kernel.cu"
	jq --arg entry "$2" --argjson us "$3" \
		'del(.tunables) | .entries = [$entry] | .launches[0].entry = $entry |
		 .launches[0].args[4] = {const: $us, type: "i32"}' \
		"$root/tests/fake/cuda/fake_add/baseline/plan.json" >"$1/plan.json"
}
