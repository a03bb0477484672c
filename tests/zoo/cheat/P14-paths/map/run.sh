# The reply names files that are none of a candidate's; nothing of them may appear anywhere.
. "$ZOO_LIB"
ls -R . >before
ZOO_STOP=propose reply "$(dirname "$0")/reply.txt"
for file in ../planted planted tests/planted trials/planted trials/0001/judge.json /tmp/planted; do
	[ -e "$file" ] && { echo through; exit 0; }
done
refused_at propose
