# clock.sh - for a run.sh that sets `scenario`: builds clock.c against the judge's own library and lets it decide.
#
# SPDX-License-Identifier: MIT
. "$ZOO_LIB"
[ -f /usr/include/seccomp.h ] && seccomp=-lseccomp || seccomp=
case $ZOO_BUILD in *-san) san=-fsanitize=address,undefined ;; *) san= ;; esac
# shellcheck disable=SC2086
"${CC:-cc}" $san -std=c11 -D_GNU_SOURCE -O1 -I"$root/stages/lib" -o clock "$root/tests/zoo/clock.c" "$ZOO_BUILD/lib.a" \
	-lcjson -lcrypto $seccomp -lm -ldl -lpthread || broken "clock.c does not compile"
./clock "$scenario" || broken "no decision"
