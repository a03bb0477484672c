# build.mk - how programs are compiled.
#
# Every C file of stages/, stages/roles/, stages/emu/ and tools/ is one program; every C file of stages/lib/
# is in one static library. A new file needs no line here, unless it needs a library of its own.
# Object files know their headers (-MMD). A changed flag rebuilds, an unchanged one does not.

# ZOO=1 is the build in which tests switch rules off (stages/lib/defence.h); nothing else may use it.
B := $(if $(ZOO),.build-zoo,$(if $(SAN),.build-san,.build))
, := ,
Q := $(if $(V),,@)
say = $(if $(V)$(findstring s,$(firstword -$(MAKEFLAGS))),,@printf '  %-5s %s\n' $1 $2)

CC := $(if $(filter default undefined,$(origin CC)),cc,$(CC))
CFLAGS ?= -O2 -g
WARN := -Wall -Wextra -Wshadow -Wconversion
SANFLAGS := $(if $(SAN),-fsanitize=address$(,)undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
ALL_CFLAGS = -std=c11 -D_GNU_SOURCE -Istages/lib $(WARN) $(SANFLAGS) $(if $(ZOO),-DTS_ZOO) $(CFLAGS)

# Libraries by program. Found by looking for files: nothing is run while the Makefile is read, and
# (=, not :=) nothing is looked for before tools/install-deps has had its turn.
# libcrypto is linked statically where its archive exists: only SHA-256 is taken from it, and
# the shared one costs every program a millisecond of start-up.
INCDIRS = /usr/include /usr/local/include $(wildcard /usr/include/*-linux-*)
LIBDIRS = /usr/lib /usr/lib64 /usr/local/lib $(wildcard /usr/lib/*-linux-*)
first_of = $(firstword $(wildcard $1))
CRYPTO = $(or $(if $(SAN),,$(call first_of,$(LIBDIRS:%=%/libcrypto.a))),-lcrypto)
HAVE_SECCOMP = $(call first_of,$(INCDIRS:%=%/seccomp.h))
ALL_CFLAGS += $(if $(HAVE_SECCOMP),-DHAVE_SECCOMP)
LDFLAGS += $(SANFLAGS) -Wl,--as-needed -Wl,--gc-sections
LDLIBS = -lcjson $(CRYPTO) $(if $(HAVE_SECCOMP),-lseccomp) -lm -ldl -lpthread
LIBS_client := -lcurl

LIB_SRC := $(wildcard stages/lib/*.c)
PROGRAM_SRC := $(wildcard stages/*.c stages/roles/*.c stages/emu/*.c tools/*.c)
TEST_SRC := $(wildcard tests/unit/*.c)
LIB := $(B)/lib.a
PROGRAMS := $(patsubst %.c,$(B)/bin/%,$(notdir $(PROGRAM_SRC)))
TESTS := $(patsubst %.c,$(B)/test/%,$(notdir $(TEST_SRC)))
OBJECTS := $(patsubst %.c,$(B)/obj/%.o,$(LIB_SRC) $(PROGRAM_SRC) $(TEST_SRC))
object_of = $(filter %/$1.o,$(patsubst %.c,$(B)/obj/%.o,$2))

$(B)/ok/deps: tools/install-deps | $(B)/ok
	$(Q)tools/install-deps
	$(Q)touch $@

# What only tests need comes when tests are built.
$(B)/ok/test-deps: tools/install-deps | $(B)/ok/deps
	$(Q)tools/install-deps --tests
	$(Q)touch $@
$(patsubst %.c,$(B)/obj/%.o,$(TEST_SRC)): | $(B)/ok/test-deps

FLAGS_NOW = $(CC) $(ALL_CFLAGS) $(LDFLAGS) $(LDLIBS)
ifeq (,$(wildcard $(B)/ok/deps))
$(B)/ok/flags: FORCE
else ifneq ($(FLAGS_NOW),$(file <$(B)/ok/flags))
$(B)/ok/flags: FORCE
endif
$(B)/ok/flags: | $(B)/ok/deps
	@printf '%s\n' '$(FLAGS_NOW)' >$@
.PHONY: FORCE
FORCE:

$(OBJECTS): $(B)/obj/%.o: %.c $(B)/ok/flags | $(sort $(dir $(OBJECTS)))
	$(call say,CC,$<)
	$(Q)$(CC) $(ALL_CFLAGS) $(if $(WERROR),-Werror) -MMD -MP -c -o $@ $<

$(LIB): $(patsubst %.c,$(B)/obj/%.o,$(LIB_SRC)) $(B)/ok/flags
	$(call say,AR,$@)
	$(Q)rm -f $@.tmp && ar rcs $@.tmp $(filter %.o,$^) && mv $@.tmp $@

# The program appears by rename: a running trial never sees half of one.
define program
$(B)/bin/$(basename $(notdir $1)): $(B)/obj/$(basename $1).o $(LIB) | $(B)/bin
	$$(call say,LD,$$@)
	$$(Q)$$(CC) $$(LDFLAGS) -o $$@.tmp.$$$$$$$$ $$< $$(LIB) $$(LIBS_$(basename $(notdir $1))) $$(LDLIBS) && mv $$@.tmp.$$$$$$$$ $$@
endef
$(foreach s,$(PROGRAM_SRC),$(eval $(call program,$s)))

$(TESTS): $(B)/test/%: $(B)/obj/tests/unit/%.o $(LIB) | $(B)/test
	$(call say,LD,$@)
	$(Q)$(CC) $(LDFLAGS) -o $@ $< $(LIB) -lcmocka $(LDLIBS)

# The fault kit of the pipeline's tests: a stage that decides at once, and a library that makes
# write, fsync and rename fail.
FAULT := $(B)/test/fake/stage $(B)/test/fault.so
$(B)/test/fake/stage: tests/fault/fake_stage.c $(LIB) | $(B)/test/fake
	$(Q)$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $< $(LIB) $(LDLIBS)
$(B)/test/fault.so: tests/fault/fault.c | $(B)/test
	$(Q)$(CC) -std=c11 -D_GNU_SOURCE $(WARN) -O1 -shared -fPIC -o $@ $< -ldl

-include tests/fake/cuda/build.mk

$(B)/ok $(B)/bin $(B)/test/fake $(B)/test $(sort $(dir $(OBJECTS))):
	@mkdir -p $@

-include $(OBJECTS:.o=.d)
