#!/bin/sh
# The zoo's folders are as its README says, and its runner sees what is not as it should be.
. "$(dirname "$0")/../lib.sh"
cd "$root" || exit 111

# ---- the folders ----
all() { cat tests/zoo/cheat/*/zoo.json | jq -s -e "$1" >/dev/null; }
# each FILTER: prints the folders whose zoo.json is not so
each() {
	wrong=$(for f in tests/zoo/$1/*/zoo.json; do
		jq -e "$2" "$f" >/dev/null 2>&1 || echo "$f"
	done)
	[ -z "$wrong" ] || { echo "$wrong"; return 1; }
}
ids() { cat tests/zoo/cheat/*/zoo.json | jq -r .id | sort -u | wc -l; }
text='type == "string" and length > 9'
ok "every cheat has id, title and why" each cheat "(.id | test(\"^[A-Z][0-9]{2}\$|^N[0-9]+\$\")) and (.title | length > 4) and (.why | $text)"
ok "every honest kernel has title and why" each honest "(.title | length > 4) and (.why | $text)"
ok "every stage is one" each cheat '.stage | IN("check", "propose", "guard", "unittest", "tune", "judge", "bench", "confirm", "promote")'
ok "every device is one" each cheat '.device | length > 0 and all(IN("emu", "cuda"))'
ok "every cheat names the rules that stop it" each cheat '.off | type == "array"'
folders() { # each is named after its id, and has a kernel or a script
	for d in tests/zoo/cheat/*/; do
		id=$(jq -r .id "$d/zoo.json")
		case $(basename "$d") in "$id"-*) ;; *) echo "$d is not of $id" ;; esac
		[ -f "$d/kernel.cu" ] || [ -f "$d/run.sh" ] || echo "$d has nothing to run"
	done | grep . && return 1
	return 0
}
ok "every folder is named after its id" folders
disguises() { # those named are there, differ, and no other is; a folder with a spec.json is a problem of the script's
	for d in tests/zoo/cheat/*/; do
		for name in $(jq -r '.disguises // {} | keys[]' "$d/zoo.json"); do
			[ -d "$d$name" ] || { echo "$d$name is missing"; continue; }
			same=1
			for f in "$d$name"/*; do
				cmp -s "$f" "$d$(basename "$f")" || same=0
			done
			[ $same = 0 ] || echo "$d$name is no other"
		done
		for sub in "$d"*/; do
			[ -d "$sub" ] && [ ! -f "${sub}spec.json" ] && ! jq -e --arg n "$(basename "$sub")" '.disguises | has($n)' "$d/zoo.json" >/dev/null &&
				echo "$sub is not named"
		done
	done | grep . && return 1
	return 0
}
ok "every disguise is there and differs" disguises
codes() { # of stages/lib/reason.c; a script may end with a word of its own, without a dot, or one of the checker's
	cat tests/zoo/cheat/*/zoo.json | jq -r '.code[], (.disguises[]? | objects | .code[]?), (.on[]? | .code[]?)' | sort -u | grep '\.' | grep -v '^harness\.' |
		while read -r code; do grep -q "{\"$code\"," stages/lib/reason.c || echo "$code is no reason"; done | grep . && return 1
	return 0
}
ok "every code is in the list of reasons" codes
rules() { # a switch stands in the source: by name, or where every reason code passes through (source, box, reply)
	grep -rho 'DEFENCE("[a-z0-9_.]*")' stages tools | sort -u >"$work/switches"
	cat tests/zoo/cheat/*/zoo.json | jq -r '.off[]?, (.disguises[]? | objects | .off[]?), (.on[]? | .off[]?)' | sort -u |
		grep -v '^naive\.' | # a careless program of the specimen's own stands in
		while read -r rule; do grep -q -F "DEFENCE(\"$rule\")" "$work/switches" || grep -q "{\"$rule\"," stages/lib/reason.c || echo "no switch for $rule"; done |
		grep . && return 1
	return 0
}
ok "every rule named has its switch" rules


# ---- the catalogue: nothing of it is left out ----
ids=$(sed -n 's/^\([A-Z][0-9]*\) [a-z]* .*/\1/p' tests/zoo/CATALOGUE)
sed -n '/^## Ids without/,/^## Proved/s/^| \([A-Z][0-9][0-9]*\) |.*/\1/p' tests/zoo/README.md | sort >"$work/rows"
ls tests/zoo/cheat | sed 's/-.*//' | sort -u >"$work/folders"
met() { # FOLDERS ROWS: each id has a folder or a line, and none has both
	for id in $ids; do
		grep -qx "$id" "$1" || grep -qx "$id" "$2" || echo "$id has neither a specimen nor a reason"
	done
	comm -12 "$1" "$2" | sed 's/$/ has a specimen and a reason why there is none/'
	grep '^[^N]' "$1" | while read -r id; do echo "$ids" | grep -qx "$id" || echo "$id is not in CATALOGUE"; done
}
ok "the catalogue is whole" test "$(echo "$ids" | wc -l)" -ge 128
ok "every id has a specimen, or a reason why there is none" same "" "$(met "$work/folders" "$work/rows")"
grep -v '^T01$' "$work/rows" >"$work/fewer"
ok "... and one without is seen" same "T01 has neither a specimen nor a reason" "$(met "$work/folders" "$work/fewer")"
shown() { # a reason ends with the tests that show it, which are there; cheats that it names are some
	sed -n '/^## Ids without/,/^## Proved/p' tests/zoo/README.md | grep '^| [A-Z][0-9]' >"$work/table"
	grep -v '| [^|]*`tests/[^|]*|$' "$work/table" | sed 's/^/no test: /'
	grep -o '`tests/[^`]*`' "$work/table" | tr -d '`' | sort -u | while read -r f; do [ -e "$f" ] || echo "$f is missing"; done
	sed -n 's/^| E[0-9]* | engines | \(.*\) | `tests.*/\1/p' "$work/table" | grep -o '`[a-z0-9]*`' | tr -d '`' | sort -u |
		while read -r cheat; do grep -q "^$cheat " tests/engine/t0*.sh || echo "no cheat $cheat"; done
}
ok "every reason names tests that are there" same "" "$(shown)"

# ---- the runner ----
[ "$(uname -m)" = x86_64 ] || [ "$(uname -m)" = aarch64 ] || finish
good=tests/zoo/honest/grid_stride
zoo=$work/zoo
specimen() { # specimen KIND/NAME JSON [KERNEL]
	mkdir -p "$zoo/$1"
	cp "$good/plan.json" "$zoo/$1"
	cp "${3:-$good/kernel.cu}" "$zoo/$1/kernel.cu"
	echo "$2" | jq '{title: "t", why: "w", spec: "vector_add", device: ["emu"]} + .' >"$zoo/$1/zoo.json"
}
sed 's/out\[i\] = .*/out[i] = 0;/' "$good/kernel.cu" >"$work/zeros.cu"
echo 'int broken' >"$work/broken.cu"
specimen cheat/A01-right '{"id": "A01", "stage": "judge", "code": ["judge.element"], "off": []}'
specimen cheat/A02-broken '{"id": "A02", "stage": "judge", "code": ["judge.element"], "off": []}' "$work/broken.cu"
specimen cheat/A03-code '{"id": "A03", "stage": "unittest", "code": ["unittest.race"], "off": []}' "$work/zeros.cu"
specimen cheat/A04-fine '{"id": "A04", "stage": "unittest", "code": ["unittest.wrong"], "off": [], "disguises": {"right": "it is right"}}' \
	"$work/zeros.cu"
mkdir "$zoo/cheat/A04-fine/right"
cp "$good/kernel.cu" "$zoo/cheat/A04-fine/right"
specimen cheat/A05-gpu '{"id": "A05", "device": ["cuda"], "stage": "judge", "code": ["judge.element"], "off": []}'
specimen cheat/A06-script '{"id": "A06", "stage": "promote", "code": ["promote.chain"], "off": []}'
printf '. "$ZOO_LIB"\nbroken on purpose\n' >"$zoo/cheat/A06-script/run.sh"
specimen honest/right '{}'
specimen honest/wrong '{}' "$work/zeros.cu"
ZOO_AT=$zoo DEVICE=emu tests/zoo/zoo -d -o "$work/page" >"$work/out" 2>&1
ran=$?
saw() { grep -q -e "$1" "$work/out" || { cat "$work/out"; return 1; }; }
ok "a zoo with failures fails" same 1 $ran
ok "a cheat that gets through is told" saw '^not ok cheat/A01-right - .*but judge through'
ok "one that dies elsewhere" saw '^not ok cheat/A02-broken - .*but guard reject '
ok "one that dies of something else" saw '^not ok cheat/A03-code - .*but unittest reject unittest.wrong'
ok "a disguise that gets through" saw '^not ok cheat/A04-fine right .*but unittest through'
ok "a script that breaks" saw '^not ok cheat/A06-script - .*broken: on purpose'
ok "an honest kernel that is refused" saw '^not ok honest/wrong - .*but unittest reject unittest.wrong'
ok "what needs a GPU is counted apart" saw '^skipped: 1 that need a GPU'
ok "the last line" same 'cheats: 5 tried, 0 rejected, 2 passed; honest: 2 tried, 1 rejected' "$(tail -n 1 "$work/out")"
ok "the page tells them, too" grep -q 'NOT as stated' "$work/page.html"
ok "an unknown name is no success" not sh -c 'tests/zoo/zoo no-such-specimen'
finish
