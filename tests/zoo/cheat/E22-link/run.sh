# A link lies where guard writes its log: what it points to must stay as it is.
. "$ZOO_LIB"
WHERE=${WHERE:-guard.log}
good_run
echo "not the judge's" >other
rm -f "trials/$id/a0/guard.json" "trials/$id/a0/$WHERE"
ln -s "$PWD/other" "trials/$id/a0/$WHERE"
"$bin/guard" "trials/$id/a0/guard.json" >step.log 2>&1
# with one rule off the other one stops guard, which then says so and writes nothing
[ "$WHERE" = guard.json ] || [ "$(verdict guard)" = pass ] || [ "${TS_OFF:-}" ] || broken "guard did not do its work: $(cat step.log)"
if [ "$(cat other)" = "not the judge's" ]; then echo kept; else echo through; fi
