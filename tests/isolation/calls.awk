# calls.awk - lines of `strace -f -Y` as PROGRAM TAB CALL TAB PATH TAB RESULT TAB whole call.
# PROGRAM is the caller's name at that time, so of an execve who called it. An interrupted line is joined.
# SPDX-License-Identifier: MIT
function say(who, text,   call, path, result) {
	call = text
	sub(/\(.*/, "", call)
	path = ""
	if (match(text, /"([^"\\]|\\.)*"/))
		path = substr(text, RSTART + 1, RLENGTH - 2)
	result = text
	sub(/.*\) = /, "", result)
	print who "\t" call "\t" path "\t" result "\t" text
}
{
	who = pid = $1
	sub(/^[0-9]+</, "", who)
	sub(/>$/, "", who)
	sub(/<.*/, "", pid)
	text = $0
	sub(/^[^ ]+ +/, "", text)
}
text ~ /<unfinished \.\.\.>$/ {
	sub(/ *<unfinished \.\.\.>$/, "", text)
	half[pid] = text
	owner[pid] = who
	next
}
text ~ /^<\.\.\. [a-z0-9_]+ resumed>/ {
	sub(/^<[^>]*>/, "", text)
	if (pid in half)
		say(owner[pid], half[pid] text)
	delete half[pid]
	next
}
text ~ /^[a-z0-9_]+\(/ { say(who, text) }
