# Touchstone: an honest optimisation loop for GPU code.
#
# SYNOPSIS
#   make [goal] [NAME=value...]
#
# EXAMPLES
#   make                                   this help
#   make iterate SPEC=vector_add N=10      ten trials on this machine: on its GPU, or without one
#   make iterate SPEC=gemm PROFILE=nebius  proposals by a language model (prompts/, profiles)
#   make status                            how the run stands; from another terminal too
#   make resume                            go on with the run that was interrupted
#   make try SPEC=gemm KERNEL=k.cu PLAN=p.json    my own kernel, same judge, same table
#
# FILES
#   specs/NAME/            a problem          trials/NNNN/            the record of one candidate
#   champion/NAME/DEVICE/  the best so far    trials/runs/R/          settings and spend of one run
#   reports/               pages to read      .build/                 what the compiler made
#
# EXIT
#   make itself exits 0 or 2. The code of the program that stopped it (2 usage, 3 malformed
#   input, 4 something is not installed, 70 our fault, 75 try again, 111 system call failed) is
#   in the last line printed and in trials/runs/R/status.json.
#
# Kill it at any moment: `make iterate` goes on where it stopped and never buys a reply twice.

ifeq (,$(filter grouped-target,$(.FEATURES))$(filter 4.3% 4.4% 4.5%,$(MAKE_VERSION)))
$(error GNU Make 4.3 or newer is needed, this is $(MAKE_VERSION))
endif
ifneq (,$(findstring t,$(firstword -$(MAKEFLAGS))))
$(error make -t would forge verdicts: it is refused here)
endif
DRY := $(strip $(foreach f,n q,$(findstring $f,$(firstword -$(MAKEFLAGS)))))

MAKEFLAGS += -rR --no-print-directory
SHELL := /bin/sh
.SUFFIXES:
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

##@ Settings (make goal NAME=value)
## SPEC=vector_add    problem: a folder of specs/
## N=10               trials of a new run
## DEVICE=            cuda (the best GPU), a GPU's name as `make devices` gives it, emu (this processor)
##                    or sim (synthetic); empty: a GPU where one works, else emu
## PROPOSER=          openai, command, sweep or replay; empty: openai if configured, else sweep
## COMMAND= REPLY=    program of the command proposer; recorded reply of the replay proposer (an engine problem's:
##                    a folder with an engine for each trial, 0001/ the first)
## REPAIRS=2          times that a proposer may repair what failed its compile or its unit tests: 0 to 2;
##                    0 for a sweep
## PLATEAU=           after this many trials without a keep widen (another idea, another parent, a higher temperature), after
##                    as many again stop; empty: go on to N
## RESEARCH=          a web search (Tavily) when the run begins and after this many rejections in a row; 0 none; empty: 3
##                    where TAVILY_API_KEY or ~/.config/touchstone/tavily.key is, else none
## PROFILE= MODEL=    endpoint profile and model of the openai proposer
## WIDTH=1            trials in flight; 1 learns from every verdict
## SEED=1             orders the search; never derives a key
## MAX_TOKENS= MAX_USD= MAX_CALLS= MAX_GPU_MINUTES= MAX_MINUTES=   budget of the run, over all its makes; the last two
##                    reserve the median so far, and what does not fit is not begun
## MAX_GPU_S= MAX_WALL_S=   GPU seconds instead of minutes; seconds of each make
## SIM_SECONDS=       DEVICE=sim: every bench holds the timing lane this long
## UNITTEST_DEVICE=   for a GPU: emu keeps unit tests off it, none leaves them out
## SANITIZER=         1: compute-sanitizer too, on a GPU's tiny shapes (a few seconds a trial); needs the toolkit's own
##                    (PATH or COMPUTE_SANITIZER) and a host on which it starts confined, else the verdict says why not
## RUN_GPU=           where candidates are compiled, judged and timed: empty is here; loopback, 'ssh HOST',
##                    slurm or a command of yours (tools/runners/README.md)
## RUN_UNITTEST=      another one for unit tests; local is here
## MODEL_DIR=         an engine problem's checkpoint: a folder with config.json and *.safetensors; empty: a random
##                    one of the problem's own shape is made (.build/models)
## PROVIDER=          make models: the one profile to ask
## ALLOW_WEAK=        1: promote although this machine isolates badly (the report says so)
## NEW=1              give up the interrupted run and start a new one
## V=1                show commands      SAN=1  build with sanitizers      WERROR=1  warnings stop
SPEC ?=
N ?=
DEVICE ?=
PROPOSER ?=
PROFILE ?=
PROVIDER ?=
MODEL ?=
WIDTH ?=
SEED ?=
MAX_TOKENS ?=
MAX_USD ?=
MAX_CALLS ?=
MAX_GPU_S ?=
MAX_GPU_MINUTES ?=
MAX_MINUTES ?=
MAX_WALL_S ?=
SIM_SECONDS ?=
UNITTEST_DEVICE ?=
SANITIZER ?=
RUN_GPU ?=
RUN_UNITTEST ?=
MODEL_DIR ?=
ALLOW_WEAK ?=
KERNEL ?=
PLAN ?=
TRIAL ?=
OUT ?=
FROM ?=
NEW ?=
COMMAND ?=
REPLY ?=
REPAIRS ?=
PLATEAU ?=
RESEARCH ?=

include tools/make/build.mk
include tools/make/bench.mk

# What iterate is told. Only settings that were given are passed: the rest are its defaults, and
# a resumed run keeps those it was started with. `+` only when make really runs: the program
# starts a make of its own, and a dry run must start nothing.
quote = '$(subst ','\'',$1)'
given = $(foreach v,$1,$(if $($v),--$v=$(call quote,$($v))))
SETTINGS := SPEC N DEVICE PROPOSER PROFILE MODEL WIDTH SEED MAX_TOKENS MAX_USD MAX_CALLS MAX_GPU_S \
	MAX_WALL_S SIM_SECONDS UNITTEST_DEVICE SANITIZER RUN_GPU RUN_UNITTEST MODEL_DIR ALLOW_WEAK NEW \
	COMMAND REPLY REPAIRS PLATEAU RESEARCH MAX_GPU_MINUTES MAX_MINUTES
ITERATE = $(if $(DRY),,+)$(Q)MAKE='$(MAKE)' $(B)/bin/iterate

##@ Goals
.PHONY: help all iterate resume status report champion check selftest try replay redo adopt ship freeze new test test-fresh lint \
	clean devices models calibrate profile tidy stale

help: ## this page
	@awk -f tools/make/help.awk $(firstword $(MAKEFILE_LIST))

all: $(PROGRAMS) ## compile everything

iterate: all ## run N trials on SPEC, or go on with the run that was interrupted
	$(ITERATE) $(call given,$(SETTINGS))

resume: all ## go on with the interrupted run, with its own settings
	$(ITERATE) --resume

status: $(B)/bin/status ## the run so far: verdicts, champion, spend, what is in flight
	$(Q)$(B)/bin/status

report: all ## write reports/ from the closed records
	$(Q)$(B)/bin/render

champion: $(B)/bin/status ## show the best of SPEC, on every device
	$(Q)$(B)/bin/status --champion $(call given,SPEC)

check: all ## prove SPEC sound before money is spent on it
	$(Q)$(B)/bin/check $(call given,SPEC DEVICE MODEL_DIR)

selftest: all ## try the judge itself on DEVICE: what breaks its rules must be refused
	$(Q)$(B)/bin/selftest $(call given,DEVICE)

try: all ## judge my own kernel: SPEC= KERNEL= PLAN=; an engine: KERNEL= its folder
	$(ITERATE) --try $(call given,$(SETTINGS) KERNEL PLAN)

redo: all ## the reply of TRIAL once more, as a new trial
	$(ITERATE) --redo $(call given,$(SETTINGS) TRIAL)

adopt: all ## someone else's trial or folder, FROM=record, judged here as a new trial
	$(ITERATE) --adopt $(call given,$(SETTINGS) FROM)

replay: all ## rebuild TRIAL from its record, judge it again, compare; FROM=a shipped record
	$(Q)$(B)/bin/replay $(call given,TRIAL FROM)

ship: all ## what was found on DEVICE into champion/shipped/, for anyone to check: FROM=tree SPEC=
	$(Q)BUILD=$(B) tools/ship $(call given,DEVICE FROM SPEC)

freeze: all ## an engine problem's champion judged and timed again, copied to OUT with FREEZE.json: SPEC= OUT=
	$(Q)$(B)/bin/freeze $(call given,SPEC OUT DEVICE MODEL_DIR)

new: $(B)/bin/new ## a new problem folder specs/SPEC, from a small working template
	$(Q)$(B)/bin/new $(call quote,$(SPEC))

devices: $(B)/bin/status $(B)/bin/probe ## what this machine can run on, and why not on the rest
	$(Q)$(B)/bin/status --devices

models: $(B)/bin/models $(B)/bin/client ## does each language model that is set up answer? a tiny call each; PROVIDER= MODEL=
	$(Q)$(B)/bin/models $(call given,PROVIDER MODEL)

profile: all ## metrics of a kept TRIAL by Nsight Compute, for the next prompts
	$(Q)$(B)/bin/profile $(call given,TRIAL)

calibrate: all ## measure what the GPUs can do at most: bandwidth, fp32, tensor cores
	$(Q)$(B)/bin/status --calibrate

tidy: $(B)/bin/iterate ## remove leftovers of killed programs
	$(ITERATE) --tidy

stale: $(B)/bin/status ## trials made by other builds of the programs than the present ones
	$(Q)$(B)/bin/status --stale

test: all $(TESTS) $(FAULT) ## every test suite; last line: passed, failed
	$(Q)BUILD=$(B) tests/run-all

test-fresh: ## both commands of the README in a bare Debian 12 root: needs root and debootstrap, slow
	$(Q)tests/fresh.sh

lint: ## cppcheck and clang-tidy over our C, where they are installed
	$(Q)tests/lint

clean: ## remove what the compiler made; trials, champion and reports stay
	$(Q)rm -rf .build .build-san .build-zoo

