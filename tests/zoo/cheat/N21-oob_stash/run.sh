# A stash beside a variable, timed on the fake driver.
. "$(dirname "$ZOO_LIB")/fake.sh"
jq 'del(.tunables) | .launches[0].args[4] = {const: 300, type: "i32"}' 	"$root/tests/fake/cuda/fake_add/baseline/plan.json" >good.json
jq '.entries = ["stash"] | .launches[0].entry = "stash" | .launches[0].grid = [1]' good.json >stash.json
fake_spec fake_stash "$root/tests/fake/cuda/fake_add/baseline/kernel.cu" good.json
fake_try fake_stash "$ZOO_DIR/kernel.cu" stash.json bench
