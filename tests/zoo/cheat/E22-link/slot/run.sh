# kernel.cu of the candidate is a link to a file beside the record.
. "$ZOO_LIB"
good_run
cp "trials/$id/a0/candidate/kernel.cu" other
rm -f "trials/$id/a0/guard.json"
ln -sf "$PWD/other" "trials/$id/a0/candidate/kernel.cu"
again guard
# with one rule off the other one stops guard, which then cannot do its work
[ -z "${TS_OFF:-}" ] || [ "$(verdict guard)" != none ] || { echo kept; exit 0; }
refused_at guard
