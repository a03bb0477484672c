# Two submissions: the key that the second one's inputs come from must not be the first one's.
. "$ZOO_LIB"
base=$root/tests/zoo/specs/add/baseline
jq '.launches[0].block = [128] | .launches[0].grid = ["ceil_div(N, 128)"]' "$base/plan.json" >other.json
asked() { # asked PLAN: what of the judge's verdict tells about its inputs
	ZOO_ON=emu ZOO_SPEC=add ZOO_STOP=judge try "$base/kernel.cu" "$1"
	[ "$(verdict judge)" = pass ] || broken "the baseline does not pass: $(tail -n 3 iterate.log)"
	jq -r .data.stage_key "trials/$id/judge.json"
}
first=$(asked "$base/plan.json")
[ ! "${AGAIN:-}" ] || rm -rf trials champion
second=$(asked "$PWD/other.json")
[ ${#first} = 64 ] || broken "no key was published: '$first'"
if [ "$first" = "$second" ]; then echo through; else echo fresh; fi
