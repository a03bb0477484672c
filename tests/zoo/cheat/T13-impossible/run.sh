# On the fake driver: what the problem says must be moved takes this device four milliseconds, the kernel takes 0.15.
. "$(dirname "$ZOO_LIB")/fake.sh"
at() { jq --argjson us "$1" 'del(.tunables) | .launches[0].args[4] = {const: $us, type: "i32"}' \
	"$root/tests/fake/cuda/fake_add/baseline/plan.json"; }
at 300 >good.json
at 150 >fast.json
kernel=$root/tests/fake/cuda/fake_add/baseline/kernel.cu
fake_spec fake_large "$kernel" good.json
sed -i 's/"bytes": "12 \* N"/"bytes": "8000000 * N"/' specs/fake_large/spec.json
fake_try fake_large "$kernel" fast.json bench
