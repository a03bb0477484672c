#!/bin/sh
# fresh.sh - prove the two commands of the README in a bare Debian 12 root.
#
# Builds the root with debootstrap (minbase plus git and make, nothing else), clones this
# repository's HEAD into it and runs `make iterate N=10` and `make test` there, as root, in a
# mount namespace of its own. Needs root, debootstrap and a Debian mirror; takes minutes.
#
# usage: tests/fresh.sh [DIR]     DIR: where to build (default: a new directory in TMPDIR)
# MIRROR=URL  Debian mirror (default: the first one in this machine's own apt sources)
# KEEP=1      keep the root afterwards     ONLY=iterate|test  run one of the two commands
set -eu

top=$(cd "$(dirname "$0")/.." && pwd)
die() { echo "fresh: $1" >&2; exit "$2"; }
[ "$(id -u)" = 0 ] || die "needs root (debootstrap and chroot)" 4
command -v debootstrap >/dev/null || die "debootstrap is missing: apt-get install debootstrap" 4

if [ -z "${FRESH_INSIDE:-}" ]; then
	FRESH_INSIDE=1 exec unshare --mount --propagation private "$0" "$@"
fi

if [ -z "${MIRROR:-}" ]; then
	MIRROR=$(sed -n 's/^URIs: *\([^ ]*\).*/\1/p' /etc/apt/sources.list.d/*.sources 2>/dev/null | head -n 1)
	[ -n "$MIRROR" ] || MIRROR=$(sed -n 's/^deb [^h]*\(http[^ ]*\) .*/\1/p' /etc/apt/sources.list 2>/dev/null | head -n 1)
	[ -n "$MIRROR" ] || die "no Debian mirror found: set MIRROR" 4
fi
root=${1:-$(mktemp -d "${TMPDIR:-/tmp}/fresh.XXXXXX")}
mkdir -p "$root"
chmod 755 "$root" # mktemp makes it private, and a real root is not: the box is another user
cleanup() {
	umount -l "$root/proc" "$root/dev" "$root/sys" 2>/dev/null || true
	[ -n "${KEEP:-}" ] || rm -rf --one-file-system "$root"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

echo "# building a bare Debian 12 root in $root"
debootstrap --variant=minbase --include=git,make bookworm "$root" "$MIRROR" >"$root.log" 2>&1 ||
	die "debootstrap failed, see $root.log" 111
rm -f "$root.log"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount --rbind /sys "$root/sys"
cp /etc/resolv.conf /etc/hosts "$root/etc/" 2>/dev/null || true
cp -r /etc/apt/apt.conf.d/. "$root/etc/apt/apt.conf.d/" 2>/dev/null || true

echo "# packages in the root: $(chroot "$root" dpkg-query -f '.' -W | wc -c); gcc: $(chroot "$root" sh -c 'command -v gcc || echo none')"
git -C "$top" bundle create "$root/touchstone.bundle" HEAD >/dev/null 2>&1
run() {
	env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
		chroot "$root" sh -c "$1" </dev/null
}
run 'git clone -q /touchstone.bundle /touchstone'
status=0
command_run() {
	start=$(date +%s)
	echo "\$ $1"
	run "cd /touchstone && $1" || { status=1; echo "not ok - $1"; return 0; }
	echo "ok - $1 ($(($(date +%s) - start)) s)"
}
[ "${ONLY:-iterate}" = iterate ] && command_run 'make iterate N=10'
[ "${ONLY:-iterate}" = iterate ] && { # again with the packages in: this is the three-minute promise
	command_run 'make iterate N=10'
	run 'cd /touchstone && test -e champion/vector_add/emu' && echo "ok - a champion stands" || { status=1; echo "not ok - no promotion"; }
}
[ "${ONLY:-test}" = test ] && command_run 'make test'
exit $status
