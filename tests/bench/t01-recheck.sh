#!/bin/sh
# make recheck: a champion's folder carries the ticks it was kept on, and they give its verdicts again.
. "$(dirname "$0")/../lib.sh"
real_tree
mkdir tests/bench
ln -s "$root/tests/bench/recheck.sh" tests/bench/recheck.sh

ok "all evidence in the tree agrees" "$root/tests/bench/recheck.sh" "$root/champion" "$root"/tests/bench/evidence*
ok "three trials run" has 'run r0001 is done' make iterate DEVICE=sim PROPOSER=sweep N=3
ok "the champion's folder has its raw samples" has ' 0 of them' make recheck
ok "of bench and of confirm" has '2 verdicts with raw' make recheck
ok "recheck agrees" code 0 make recheck
raw=$(find champion -name confirm.raw | head -n 1)
printf 'x' | dd of="$raw" bs=1 seek=1000 conv=notrunc 2>/dev/null
ok "a touched tick is seen" has '1 of them' make recheck
ok "and make fails" code 2 make recheck
finish
