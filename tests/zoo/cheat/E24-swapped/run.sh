# Between guard and unittest the image becomes another one, which never passed a gate.
. "$ZOO_LIB"
ZOO_ON=emu ZOO_SPEC=add ZOO_STOP=unittest try "$root/tests/zoo/specs/add/baseline/kernel.cu" \
	"$root/tests/zoo/specs/add/baseline/plan.json"
[ "$(verdict unittest)" = pass ] || broken "the baseline does not pass: $(tail -n 3 iterate.log)"
for mode in emu-sanitize emu-race; do
	image=trials/$id/a0/artefact/$mode
	{ cat "$image"; echo; } >"$mode.other"
	if [ "${LINK:-}" ]; then ln -sf "$PWD/$mode.other" "$image"; else cp "$mode.other" "$image"; fi
done
again unittest
[ "$(verdict unittest)" = none ] || refused_at unittest
grep -q -e 'not the file that was recorded' -e 'not the artefact of its verdict' -e 'Too many levels' step.log || broken "other words: $(tail -n 2 step.log)"
echo swap
