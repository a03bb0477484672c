#!/bin/sh
# loop.sh - run bench_loop in a scratch copy of the repository; see loop.c.
#
# usage: tests/bench/loop.sh [MOST [REPEATS]]      from the repository root, after `make`
# BUILD (default .build) is where the programs are. Leaves nothing behind but the table.
set -eu

build=${BUILD:-.build}
if [ -z "${TMPDIR:-}" ] && [ -w /dev/shm ]; then TMPDIR=/dev/shm; fi
scratch=$(mktemp -d "${TMPDIR:-/tmp}/touchstone-loop.XXXXXX")
trap 'rm -rf "$scratch"' EXIT INT TERM

mkdir "$scratch/trials" "$scratch/champion" "$scratch/reports"
mkdir "$scratch/.build"
cp -Rp Makefile stages tools specs prompts "$scratch/"
cp -Rp "$build/bin" "$scratch/.build/bin"
for d in trials champion reports; do
	if [ -f "$d/README.md" ]; then cp -p "$d/README.md" "$scratch/$d/"; fi
done
rc=0
"$build/bench/loop" "$scratch" "${1:-5000}" "${2:-5}" || rc=$?
if [ "$rc" -ne 0 ] && [ -f "$scratch/loop.log" ]; then tail -5 "$scratch/loop.log" >&2; fi
exit "$rc"
