# The reply names files that are none of a candidate's; nothing of them may appear anywhere.
. "$ZOO_LIB"
ls -R . >before
ZOO_STOP=propose reply "$(dirname "$0")/reply.txt"
for file in ../planted planted tests/planted trials/planted /tmp/planted; do
	[ -e "$file" ] && { echo through; exit 0; }
done
# of a closed trial the loop itself writes what is skipped
said=$(jq -r .verdict trials/0001/judge.json 2>/dev/null)
[ "${said:-skip}" = skip ] || { echo through; exit 0; }
refused_at propose
