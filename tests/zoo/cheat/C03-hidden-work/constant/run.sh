# A problem whose answer is one, whatever is put in: check must say so.
. "$ZOO_LIB"
name=one
ln -s "$ZOO_DIR/$name" "specs/$name"
got=0
"$bin/check" --SPEC="$name" --DEVICE=emu >check.log 2>&1 </dev/null || got=$?
case $got in
0) echo through ;;
3)
	grep -q "FAIL.*ones: ACCEPTED" check.log || broken "check says no to something else: $(grep FAIL check.log)"
	echo spec_refused
	;;
*) broken "$(tail -n 3 check.log)" ;;
esac
