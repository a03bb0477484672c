. tests/lib.sh
real_tree
make iterate SPEC=rmsnorm DEVICE=emu PROPOSER=sweep N=1 NEW=1
t=$(ls -d trials/0* | tail -1)
for s in a0/guard judge promote; do jq -c '[.stage,.verdict,.reason.code,.isolation, .reason.message]' $t/$s.json; done
