#!/bin/sh
# A disk that fills up under the real stages: a clean stop wherever it happens, and the run goes on when
# there is room.
. "$(dirname "$0")/../lib.sh"
real_tree
small=$work/small
[ "$(id -u)" = 0 ] && mkdir "$small" && mount -t tmpfs -o size=8m none "$small" 2>/dev/null ||
	skip_all "no small tmpfs here: needs root and mount"
cleanup() {
	umount -l "$small" 2>/dev/null
	[ "${KEEP:-}" ] && echo "# kept $work" && return
	rm -rf "$work"
}
go() { make iterate DEVICE=sim PROPOSER=sweep N=4 SEED=2; }
clear() {
	rm -rf "$small"/* "$small"/.[a-z]* champion trials
	mkdir "$small/trials" && ln -s "$small/trials" trials
}
fill() { # fill KB: leave so much
	left=$(df --output=avail -k "$small" | tail -n 1)
	head -c $(((left - $1) * 1024)) /dev/zero >"$small/filler"
}
whole() { # every verdict that is there can be read
	find trials/ -name '*.json' ! -name '*.tmp.*' -exec jq -e -s 'length == 1' {} \; | grep -v true && return 1
	return 0
}

clear
go >/dev/null 2>&1
essence >"$work/want"
used=$(du -sk "$small" | cut -f1)
echo "# a run of four takes $used KB"
for part in 2 15 35 55 75 95; do
	clear
	fill $((used * part / 100))
	ok "full at $part %: it stops" not go
	cp "$work/.out" "$work/stopped"
	ok "full at $part %: the reason is said" grep -q -i 'no space left' "$work/stopped"
	ok "full at $part %: what is there is whole" whole
	ok "full at $part %: nothing was blamed on a candidate" same '' \
		"$(cat trials/[0-9]*/promote.json 2>/dev/null | jq -r 'select(.reason.code | startswith("run.")) | .trial')"
	ok "full at $part %: still full, still stopped" not go
	rm "$small/filler"
	ok "full at $part %: with room it goes on" go
	essence >"$work/got"
	ok "full at $part %: and ends the same" cmp "$work/want" "$work/got"
	ok "full at $part %: nothing temporary is left" same '' "$(find trials/ champion/ -name '*.tmp*')"
done
finish
