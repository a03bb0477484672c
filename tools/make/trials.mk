# trials.mk - the pipeline of one run: which verdict needs which.
#
# Run by tools/iterate, which knows the run lock and the ids, as
#   make -f tools/make/trials.mk TS_RUN=trials/runs/r0001
# where $(TS_RUN)/ids.mk sets TS_IDS (in order), TS_W (window) and TS_G (timing lanes).
#
# Every step is one target made by one line. Prerequisites are order-only: what is finished stays
# finished whatever the clock says, and a paid reply is never bought again. Between trials there
# are three kinds of links:
#   a0/propose of trial k waits for promote of k-W   the rolling window
#   tune of trial k waits for promote of k-G         one candidate at a time in a timing lane
#   confirm of trial k waits for promote of k-1      confirmed and promoted in order
# Steps that do not apply are skipped by their programs (a verdict `skip`), so that the graph is
# the same for every trial. The wrapper writes such verdicts ahead; a recipe whose verdict has
# appeared since make began ($(file), read when the recipe's turn comes) starts nothing.

include $(TS_RUN)/ids.mk

MAKEFLAGS += -rR --no-print-directory
SHELL := /bin/sh
.SUFFIXES:
.DELETE_ON_ERROR:

T := trials
# The recipe wrapper, from iterate.
RUN := $(TS_RUNNER)

.PHONY: run
run: $(TS_IDS:%=$T/%/promote.json)

# $(call step,NAME,UPSTREAM). A verdict appears by rename, whole, and stands from then on: make must
# not delete one because the wrapper was interrupted, or failed at what follows from the verdict.
define step
.PRECIOUS: $$(TS_IDS:%=$T/%/$1.json)
$$(TS_IDS:%=$T/%/$1.json): $T/%/$1.json: | $(if $2,$T/%/$2.json,$T/%/trial.json)
	@$$(if $$(file <$$@),,'$$(RUN)' $$@)
endef
$(eval $(call step,a0/propose,))
$(eval $(call step,a0/guard,a0/propose))
$(eval $(call step,a0/unittest,a0/guard))
$(eval $(call step,a1/propose,a0/unittest))
$(eval $(call step,a1/guard,a1/propose))
$(eval $(call step,a1/unittest,a1/guard))
$(eval $(call step,a2/propose,a1/unittest))
$(eval $(call step,a2/guard,a2/propose))
$(eval $(call step,a2/unittest,a2/guard))
$(eval $(call step,tune,a2/unittest))
$(eval $(call step,judge,tune))
$(eval $(call step,bench,judge))
$(eval $(call step,confirm,bench))
$(eval $(call step,promote,confirm))

# The links between trials. `done` holds the ids before this one, newest first.
done :=
$(foreach i,$(TS_IDS),\
  $(if $(word $(TS_W),$(done)),$(eval $T/$i/a0/propose.json: | $T/$(word $(TS_W),$(done))/promote.json))\
  $(if $(word $(TS_G),$(done)),$(eval $T/$i/tune.json: | $T/$(word $(TS_G),$(done))/promote.json))\
  $(if $(done),$(eval $T/$i/confirm.json: | $T/$(firstword $(done))/promote.json))\
  $(eval done := $i $(wordlist 1,63,$(done))))
