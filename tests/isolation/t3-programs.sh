#!/bin/sh
# t3-programs.sh - which program links, opens and starts what: link map, and strace of whole runs.
#
# One emulated trial proposed by the scripted model server with the key in the environment, and one on the fake
# GPU. Every execve with its environment, every open and every connect of every process is looked at.
#
# SPDX-License-Identifier: MIT
cd "$(dirname "$0")/../.." || exit 1
. tests/propose/lib.sh
command -v strace >/dev/null || { echo "1..0 # SKIP no strace"; exit 0; }
build_server || { echo "Bail out! no test server"; exit 1; }
# a sanitizer's run time opens files of its own
case $BUILD in *-san) echo "1..0 # SKIP programs with sanitizers open other files"; exit 0 ;; esac
LC_ALL=C
export LC_ALL
strace -f -Y -o "$T/try" true 2>/dev/null || { echo "1..0 # SKIP strace may not trace here"; exit 0; }

# ---- link map ----
linked() { # linked LIBRARY: programs that name it
	for p in "$BIN"/*; do readelf -d "$p" 2>/dev/null | grep -q "NEEDED.*\[$1" && basename "$p"; done | paste -sd' '
}
holds() { # holds FUNCTION: programs that contain it
	for p in "$BIN"/*; do nm "$p" 2>/dev/null | grep -q " [tT] $1\$" && basename "$p"; done | paste -sd' '
}
same "libcurl is linked by the client alone" client "$(linked libcurl)"
same "the driver, NVRTC and NVML are linked by nobody" "" "$(linked libcuda)$(linked libnvrtc)$(linked libnvidia)"
# bench, check, freeze, judge and unittest replay what engines in CUDA say (stages/lib/qwen3_gpu.h)
same "the driver can be opened by these" "bare bench check checker freeze judge probe unittest worker" "$(holds cuda_open)"
same "NVML by the probe" probe "$(holds nvml_open)"
same "NVRTC by the box" box "$(holds nvrtc_main)"
same "a key file can be read by the client" client "$(holds secret_read)"

# ---- a run under strace ----
watch() { # watch COMMAND...: calls in $T/calls.tsv, one a line
	strace -f -Y -v -s 100000 -q --seccomp-bpf -e trace=execve,execveat,open,openat,creat,connect -e signal=none \
		-o "$T/strace" "$@" >"$T/out" 2>&1
	CODE=$?
	awk -f "$ROOT/tests/isolation/calls.awk" "$T/strace" | awk -F'\t' '$4 !~ /^-1/ || $2 == "connect"' >"$T/calls.tsv"
}
tree() {
	rm -rf "$W"
	mkdir -p "$W"
	for part in Makefile tools stages; do ln -s "$ROOT/$part" "$W/$part"; done
	mkdir "$W/specs"
	cp -r "$1" "$W/specs/"
	cp -r "$ROOT/prompts" "$W/prompts"
	ln -s "$BUILD" "$W/$(basename "$BUILD")"
	cd "$W" || exit 1
}
# Who made calls whose path fits: names, sorted. who CALL-PATTERN PATH-PATTERN
who() { awk -F'\t' -v c="$1" -v p="$2" '$2 ~ c && $3 ~ p { print $1 }' "$T/calls.tsv" | sort -u | paste -sd' '; }
# Paths that PROGRAMS (a pattern) opened and that do not fit. strays PROGRAMS ALLOWED-PATTERN
strays() {
	awk -F'\t' -v w="^($1)\$" -v p="$2" '$2 ~ /open|creat/ && $1 ~ w && $3 !~ p { print $1, $3 }' "$T/calls.tsv" | sort -u | head -n 5
}
writes() { # writes PROGRAMS: files of the record that they opened for writing
	awk -F'\t' -v w="^($1)\$" '$1 ~ w && $5 ~ /O_(WRONLY|RDWR)/ && $3 ~ /(^|\/)(trials|champion|reports)\// { print $1, $3 }' \
		"$T/calls.tsv" | sort -u | head -n 5
}
# what a loader, a C library and a process that confines itself look at
system='^(/etc/ld\.so\.cache|/lib/|/lib64|/usr/|/proc/self/|/proc/vmstat|/dev/(null|urandom)$|/proc/[0-9]+/(statm|stat|status)$|/proc$|/proc/sys/)'
compilers='g[+][+]|gcc|cc1|cc1plus|as|ld|collect2|ar|elfscan'
common() { # after any run
	same "$1: the run's key is read by the checker alone" checker "$(who '^open' '/r0001/key$')"
	same "$1: compilers are started by the box and by each other" "" \
		"$(awk -F'\t' '$2 == "execve" && $3 ~ /\/(g\+\+|gcc|cc1|cc1plus|as|ld|collect2|ar)$/ { print $1 }' "$T/calls.tsv" | sort -u |
			grep -vxE 'box|g\+\+|gcc|collect2')"
	same "$1: box and compilers open the toolchain, the kit and what they make" "" \
		"$(strays "box|$compilers" "$system|^(/bin\$|/lib\$|/usr\$|/kit(/|\$)|/tmp(/cc[A-Za-z0-9]*\.[.a-z]*)?\$|/etc/alternatives|etc/ld.so.cache\$|dev/null\$|[^/]+\$|rt/)")"
	same "$1: none of them has a file of the record" "" "$(writes "box|$compilers|child|worker|checker|probe")"
	same "$1: git is started by those who keep history and make patches" "" \
		"$(awk -F'\t' '$2 == "execve" && $3 ~ /\/git$/ { print $1 }' "$T/calls.tsv" | sort -u | grep -vxE 'promote|propose|iterate|git')"
}

KEY=sk-live-$$-programs
serve --model
tree "$ROOT/specs/rmsnorm"
OPENAI_BASE_URL="http://127.0.0.1:$PORT/v1" OPENAI_API_KEY=$KEY OPENAI_MODEL=m
export OPENAI_BASE_URL OPENAI_API_KEY OPENAI_MODEL
watch make iterate DEVICE=emu SPEC=rmsnorm N=1
unset OPENAI_BASE_URL OPENAI_API_KEY OPENAI_MODEL
[ "$CODE" = 0 ] || sed 's/^/# /' "$T/out" | tail -n 15
same "an emulated trial by a model" "0 1" "$CODE $(ls trials/0001/promote.json | wc -l | tr -d ' ')"
common emu
same "emu: libcurl is opened by the client" client "$(who '^open' libcurl)"
same "emu: nobody opens a driver" "" "$(who '^open' 'libcuda|libnvrtc|libnvidia')"
same "emu: the client alone connects" client "$(who '^connect$' '')"
same "emu: and only to the server" "" "$(awk -F'\t' -v p="htons($PORT)" '$2 == "connect" && !index($5, p) { print $5 }' "$T/calls.tsv")"
same "emu: a child opens its libraries, and its image nothing" "" "$(strays 'child|200|3' "$system")"
same "emu: the client writes its reply alone" "" "$(writes client | grep -vE 'trials/0001/a0/(client\.json|reply\.(json|sse))\.tmp')"
same "emu: the key goes to those on its way to the client" "client iterate make propose run sh" \
	"$(grep -F "$KEY" "$T/strace" | grep -o 'execve("[^"]*"' | sed 's/.*\///; s/"//' | grep -vx env | sort -u | paste -sd' ')"
check "emu: it is nobody's argument" sh -c "! grep -F '$KEY' '$T/strace' | sed 's/\], \[.*//' | grep -F '$KEY'"
stop_server

# ---- on the fake GPU ----
cd "$ROOT" || exit 1
fake=$BUILD/test/fake/cuda
nvrtc=$(ls /usr/local/cuda/lib64/libnvrtc.so.1? /usr/lib/*/libnvrtc.so.1? 2>/dev/null | head -n 1)
if [ -f "$fake/libcuda.so.1" ] && [ -n "$nvrtc" ]; then
	mkdir "$T/gpu"
	cp "$fake/libcuda.so.1" "$fake/libnvidia-ml.so.1" "$T/gpu"
	printf 'FAKE_CUDA_GRANULE=16384\nFAKE_CUDA_L2=65536\n' >"$T/gpu/fake.conf"
	tree "$ROOT/tests/fake/cuda/fake_add"
	watch env LD_LIBRARY_PATH="$T/gpu" make iterate DEVICE=cuda SPEC=fake_add PROPOSER=sweep N=1 UNITTEST_DEVICE=none
	same "a trial on the fake GPU" "0 1" "$CODE $(ls trials/0001/promote.json | wc -l | tr -d ' ')"
	common gpu
	same "gpu: the driver is opened by those who may" "checker probe worker" "$(who '^open' 'libcuda\.so')"
	same "gpu: NVML by the probe" probe "$(who '^open' libnvidia-ml)"
	same "gpu: NVRTC by the box, if its cache has no answer" "" "$(who '^open' libnvrtc | grep -vx box)"
	same "gpu: nobody connects" "" "$(who '^connect$' '')"
	same "gpu: libcurl is opened by nobody" "" "$(who '^open' libcurl)"
	same "gpu: a worker opens libraries and devices" "" "$(strays worker "$system|^/?dev/|^$T/gpu(/|\$)|^/sys(/|\$)|^/(lib64|lib|usr|tmp)\$|^etc/ld.so.cache\$")"
else
	report ok "the fake GPU # SKIP no fake driver, or no NVRTC"
fi
cd "$ROOT" || exit 1
done_testing
