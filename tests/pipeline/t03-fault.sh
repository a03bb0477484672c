#!/bin/sh
# A call that fails leaves no verdict and says so: exit 111; a full disk is not the candidate's fault.
. "$(dirname "$0")/../lib.sh"
case $build in *-san) skip_all "LD_PRELOAD and sanitizers do not mix" ;; esac
fake_tree

start() {
	rm -rf trials champion
	MAKE=/bin/true "$bin/iterate" --DEVICE=sim --PROPOSER=sweep --N=2 >/dev/null 2>&1
	mkdir -p trials/0001/a0
}
propose() { TS_PRELOAD=$build/test/fault.so "$bin/run" trials/0001/a0/propose.json; }

for fault in write:5 write:28 fsync:5 rename:5 close:5; do
	start
	export TS_FAULT=$fault:propose.json
	ok "$fault on the verdict: exit 111" code 111 propose
	ok "$fault: no verdict" not test -e trials/0001/a0/propose.json
	ok "$fault: nothing temporary" same 0 "$(find trials -name '*.tmp.*' | wc -l)"
	unset TS_FAULT
	ok "$fault: works when the fault is gone" "$bin/run" trials/0001/a0/propose.json
done
start
export TS_FAULT=fsync:5:kernel.cu
ok "a side file that does not sync: exit 111" code 111 propose
ok "a side file that does not sync: no verdict" not test -e trials/0001/a0/propose.json
unset TS_FAULT
ok "failures are on record" jq -es 'length == 1 and .[0].exit == 111 and .[0].who == "ours"' \
	trials/0001/failures.jsonl

# A tmpfs that really is full. The canary does not pass there, so no trial is ended for it.
if [ "$(id -u)" = 0 ] && mkdir "$work/small" && mount -t tmpfs -o size=1m none "$work/small" 2>/dev/null
then
	start
	mv trials "$work/small/trials" && ln -s "$work/small/trials" trials
	head -c 2m /dev/zero >"$work/small/filler" 2>/dev/null
	for try in 1 2 3; do
		ok "full disk, try $try: exit 111" code 111 "$bin/run" trials/0001/a0/propose.json
	done
	ok "full disk: the trial is not ended" not test -e trials/0001/a0/propose.json
	rm "$work/small/filler"
	ok "room again: it works" "$bin/run" trials/0001/a0/propose.json
	rm trials
	umount "$work/small"
else
	echo "# no small tmpfs here: needs root and mount"
fi
finish
