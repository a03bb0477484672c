# The answer's words hold what make and the shell would run. All of the pipeline is run by the true make; then
# nothing may have been run of them. With naive.make named in TS_OFF the words go where they go in a
# careless harness: into a variable of make and a line of the shell. That is no switch of ours: nothing here
# puts them on a command line, and this shows that the words are alive.
. "$ZOO_LIB"
BAD=${BAD:-'$(shell touch planted) `touch planted`; touch planted #'}
base=$root/specs/vector_add/baseline
{
	jq -n --arg bad "$BAD" '{item: $bad, hypothesis: $bad, expected_effect: $bad, risk: $bad, reasoning: $bad}'
	printf '\n```cuda kernel.cu\n// %s\n' "$BAD"
	cat "$base/kernel.cu"
	printf '```\n\n```json plan.json\n'
	jq '.tunables.BLOCK.value = 512' "$base/plan.json"
	printf '```\n'
} >r.txt
case ,${TS_OFF:-}, in
*,naive.make,*)
	item=$(jq -n --arg bad "$BAD" '$bad' | jq -r .)
	printf 'all:\n\t@echo trying: $(ITEM)\n' >naive.mk
	make -f naive.mk ITEM="$item" >naive.log 2>&1
	[ -e planted ] && echo through && exit 0
	broken "the words do nothing: $(cat naive.log)"
	;;
esac
ZOO_MAKE=make reply "$PWD/r.txt"
[ "$(verdict promote)" != none ] || broken "the run did not end: $(tail -n 3 iterate.log)"
[ "$(jq -r ".data.item | length" "trials/$id/promote.json")" -gt 10 ] || broken "the words are not in the record"
"$bin/render" >render.log 2>&1
"$bin/status" >status.log 2>&1
find . -name 'planted*' ! -type l | grep -q . && echo through && exit 0
echo inert
