# The champion's pace is changed under it, on the fake driver.
. "$(dirname "$ZOO_LIB")/fake.sh"
jq '.entries = ["paced"] | .launches[0].entry = "paced"' "$ZOO_DIR/plan.json" >paced.json
fake_spec fake_paced "$ZOO_DIR/champion.cu" paced.json
fake_try fake_paced "$ZOO_DIR/kernel.cu" "$ZOO_DIR/plan.json" bench
