# fake.sh - for a run.sh whose specimen needs what only a GPU has and the fake driver imitates (tests/fake/cuda):
# modules that live in one process, a clock that nothing on the host disturbs.
#
# Its kernel.cu lies in the specimen's folder; tests/fake/cuda/kernels/zoo.cu has its host build.
#
# SPDX-License-Identifier: MIT
. "$ZOO_LIB"
mkdir gpu && cp "$ZOO_BUILD"/test/fake/cuda/*.so.1 gpu 2>/dev/null || broken "no fake driver was built"
printf '%s\n' FAKE_CUDA_GRANULE=65536 FAKE_CUDA_L2=262144 >gpu/fake.conf
LD_LIBRARY_PATH=$PWD/gpu
export LD_LIBRARY_PATH

# fake_spec NAME KERNEL.cu PLAN.json: the fake problem with that baseline.
fake_spec() {
	cp -R "$root/tests/fake/cuda/fake_add" "specs/$1"
	sed -i 's/"name": "fake_add"/"name": "'"$1"'"/' "specs/$1/spec.json"
	cp "$2" "specs/$1/baseline/kernel.cu" && cp "$3" "specs/$1/baseline/plan.json"
}

# fake_try SPEC KERNEL PLAN STEP: through the true steps up to that one; says how it ended.
fake_try() {
	ZOO_SPEC=$1 ZOO_ON=cuda ZOO_STOP=$4 try "$2" "$3" --UNITTEST_DEVICE=none
	[ "$(verdict guard)" = reject ] && refused_at guard
	jq -r '.data.decide.estimate.ratio // empty | "ratio \(.)"' "$(step_file "$4")" 2>/dev/null
	refused_at "$4"
}
