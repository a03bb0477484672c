# build.mk - the fake CUDA driver of the tests (README.md). Included by tools/make/build.mk.
#
# Three libraries in a folder of their own: LD_LIBRARY_PATH=.build/test/fake/cuda makes a GPU of this host.
# Never built with sanitizers: it catches the faults of kernels itself.

FAKE_CUDA_DIR := $(B)/test/fake/cuda
FAKE_CUDA_SRC := $(wildcard tests/fake/cuda/*.c)
FAKE_CUDA_RT := $(patsubst %,stages/emu/rt/%.c,sched block warp shared stack switch)
FAKE_CUDA_UNITS := $(wildcard tests/fake/cuda/kernels/*.cu tests/fake/cuda/fake_add/reference.cu stages/gpu/check.cu stages/gpu/qwen3.cu \
	stages/selftest/truth.cu stages/selftest/baseline/kernel.cu)
FAKE_CUDA := $(FAKE_CUDA_DIR)/libcuda.so.1 $(FAKE_CUDA_DIR)/libnvidia-ml.so.1 $(FAKE_CUDA_DIR)/libcublas.so.13
FAKE_CUDA_O := $(patsubst %.c,$(FAKE_CUDA_DIR)/o/%.o,$(notdir $(filter-out %/nvml.c %/cublas.c,$(FAKE_CUDA_SRC)) $(FAKE_CUDA_RT)))
FAKE_CUDA_UNIT_O := $(patsubst %.cu,$(FAKE_CUDA_DIR)/o/unit_%.o,$(notdir $(FAKE_CUDA_UNITS)))
FAKE_CUDA_CC = $(CC) -std=c11 -D_GNU_SOURCE $(WARN) -O2 -g -fPIC -fvisibility=hidden
# the same language as an emulated kernel's (stages/emu/build_plan.h), but position independent
FAKE_CUDA_CXX = g++ -std=c++17 -O2 -g1 -fPIC -w -nostdinc -nostdinc++ -isystem stages/emu/include \
	-fno-exceptions -fno-rtti -fno-extern-tls-init -fno-threadsafe-statics -fno-math-errno -fno-trapping-math \
	-fno-stack-protector -fno-strict-aliasing -ffp-contract=off
FAULT += $(FAKE_CUDA)

define fake_c
$(FAKE_CUDA_DIR)/o/$(basename $(notdir $1)).o: $1 tests/fake/cuda/build.mk | $(FAKE_CUDA_DIR)/o
	$$(call say,CC,$$<)
	$$(Q)$$(FAKE_CUDA_CC) $$(if $$(WERROR),-Werror) -I$(FAKE_CUDA_DIR)/o \
		-DFAKE_UNITS='$$(patsubst %.cu,UNIT(%),$$(notdir $$(FAKE_CUDA_UNITS)))' -MMD -MP -c -o $$@ $$<
endef
$(foreach c,$(FAKE_CUDA_SRC) $(FAKE_CUDA_RT),$(eval $(call fake_c,$c)))
# one more kernel file, and the list of units is another
ifneq ($(FAKE_CUDA_UNITS),$(file <$(FAKE_CUDA_DIR)/o/units))
$(FAKE_CUDA_DIR)/o/units: FORCE
endif
$(FAKE_CUDA_DIR)/o/units: | $(FAKE_CUDA_DIR)/o
	@printf '%s\n' '$(FAKE_CUDA_UNITS)' >$@
$(FAKE_CUDA_DIR)/o/registry.o: $(FAKE_CUDA_DIR)/o/fake_objects.h $(FAKE_CUDA_DIR)/o/units

define fake_unit
$(FAKE_CUDA_DIR)/o/unit_$(basename $(notdir $1)).o: $1 tests/fake/cuda/entries.sh | $(FAKE_CUDA_DIR)/o
	$$(call say,C++,$$<)
	$$(Q)tests/fake/cuda/entries.sh $1 >$$(@:.o=.cc)
	$$(Q)$$(FAKE_CUDA_CXX) $$(foreach s,entries n_entries entry_names dynamic_shared_start,\
		-Demu_$$s=fake_$$s_$(basename $(notdir $1))) -MMD -MP -c -o $$@ $$(@:.o=.cc)
endef
$(foreach u,$(FAKE_CUDA_UNITS),$(eval $(call fake_unit,$u)))

# Variables of kernels, so that each module can have its own.
$(FAKE_CUDA_DIR)/o/fake_objects.h: $(FAKE_CUDA_UNIT_O)
	$(Q)nm -S --defined-only $(FAKE_CUDA_UNIT_O) | awk 'NF == 4 && $$3 ~ /^[BD]$$/ && $$4 !~ /^(fake|emu)_/ \
		{ print "OBJECT(" $$4 ", 0x" $$2 ")" }' >$@

$(FAKE_CUDA_DIR)/o/fake_objects.h: $(FAKE_CUDA_DIR)/o/units
$(FAKE_CUDA_DIR)/libcuda.so.1: $(FAKE_CUDA_O) $(FAKE_CUDA_UNIT_O)
	$(call say,LD,$@)
	$(Q)$(CC) -shared -Wl,-Bsymbolic,-z,defs,-soname,libcuda.so.1 -o $@.tmp $^ -lm -ldl -lpthread && mv $@.tmp $@
$(FAKE_CUDA_DIR)/libnvidia-ml.so.1: $(FAKE_CUDA_DIR)/o/nvml.o
	$(call say,LD,$@)
	$(Q)$(CC) -shared -Wl,-z,defs,-soname,libnvidia-ml.so.1 -o $@.tmp $^ -ldl && mv $@.tmp $@

$(FAKE_CUDA_DIR)/libcublas.so.13: $(FAKE_CUDA_DIR)/o/cublas.o
	$(call say,LD,$@)
	$(Q)$(CC) -shared -Wl,-z,defs,-soname,libcublas.so.13 -o $@.tmp $^ -ldl && mv $@.tmp $@

$(FAKE_CUDA_DIR)/o:
	@mkdir -p $@

-include $(FAKE_CUDA_O:.o=.d) $(FAKE_CUDA_UNIT_O:.o=.d) $(FAKE_CUDA_DIR)/o/nvml.d $(FAKE_CUDA_DIR)/o/cublas.d
