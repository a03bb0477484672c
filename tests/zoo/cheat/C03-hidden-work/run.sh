# A problem with an input that never shows in the output: check must say so.
. "$ZOO_LIB"
name=ignored
ln -s "$ZOO_DIR/$name" "specs/$name"
got=0
"$bin/check" --SPEC="$name" --DEVICE=emu >check.log 2>&1 </dev/null || got=$?
case $got in
0) echo through ;;
3)
	# with that proof switched off, another one may still refuse the problem
	grep -q "FAIL.*input 'y' does not matter" check.log || [ "${TS_OFF:-}" ] || broken "check says no to something else: $(grep FAIL check.log)"
	echo spec_refused
	;;
*) broken "$(tail -n 3 check.log)" ;;
esac
