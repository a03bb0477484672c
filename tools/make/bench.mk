# bench.mk - long measurements of the tool itself; none is part of `make test`.

BENCH_PROGRAMS := $(patsubst tests/bench/%.c,$(B)/bench/%,$(wildcard tests/bench/*.c))

$(B)/bench/aa_rules $(B)/bench/aa_page: tests/bench/aa_cells.h
$(BENCH_PROGRAMS): $(B)/bench/%: tests/bench/%.c tests/bench/noise.h $(LIB) $(B)/ok/flags | $(B)/bench
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $< $(LIB) $(LDLIBS)

$(B)/bench:
	@mkdir -p $@

.PHONY: bench-rule bench-loop bench-lane
bench-rule: $(B)/bench/rule ## false promotions and power of the decision rule, simulated
	$(Q)$< $(or $(TRIALS),3000) $(or $(PAIRS),256)

bench-loop: all $(B)/bench/loop ## what a trial costs at trial 1, 1000 and 5000
	$(Q)BUILD=$(B) tests/bench/loop.sh $(or $(MOST),5000) $(REPEATS)

bench-lane: all ## how busy the timing lane is kept by slow proposals
	$(Q)BUILD=$(B) tests/bench/lane.sh

.PHONY: bench-results
bench-results: ## the table of the README: ten trials on every shipped problem, emulated
	$(Q)tests/bench/results.sh $(RESULTS)

.PHONY: test-kill
test-kill: all $(FAULT) ## the kill-anywhere proof: KILLS=200 processes of a run of N=30 trials
	$(Q)BUILD=$(B) TEST_KILL=1 tests/kill/run

.PHONY: recheck
recheck: $(B)/bin/recheck ## recompute every timing verdict shipped under champion/ and tests/bench/ from its ticks
	$(Q)BUILD=$(B) tests/bench/recheck.sh

# On a GPU, resumable: the same file again goes on with it.
.PHONY: bench-aa bench-aa-ship
bench-aa: all $(B)/bench/aa $(B)/bench/aa_rules $(B)/bench/aa_page ## A/A and known doses on this GPU, rules side by side: AA_FILE= SECONDS=360
	$(Q)$(B)/bench/aa $(or $(AA_FILE),reports/aa.jsonl) $(or $(SECONDS),360)
	$(Q)$(B)/bench/aa_page reports/aa.html $(or $(AA_FILE),reports/aa.jsonl)
	$(Q)$(B)/bench/aa_rules $(or $(AA_FILE),reports/aa.jsonl)

# AA_FILES= what was recorded on GPUs of one model: packed into the evidence, with the page about it.
bench-aa-ship: $(B)/bench/aa_rules $(B)/bench/aa_page
	$(Q)tests/bench/aa-pack.sh $(AA_FILES) >tests/bench/evidence/$(or $(NAME),$(error NAME= of the evidence)).aa.jsonl
	$(Q)$(B)/bench/aa_page reports/shipped/$(DEVICE)/aa.html tests/bench/evidence/$(NAME).aa.jsonl
	$(Q)$(B)/bench/aa_rules tests/bench/evidence/$(NAME).aa.jsonl | tee tests/bench/evidence/$(NAME).aa.txt

# On a GPU: what a candidate costs, and what a load_inline harness costs beside it.
.PHONY: bench-candidate
bench-candidate: all ## from kernel text to verdict on this GPU, split by stage: REPEATS=3
	$(Q)BUILD=$(B) tests/bench/candidate.sh $(or $(REPEATS),3)

# The zoo: tests/zoo/README.md. The build whose rules can be switched off is for zoo-full alone.
.PHONY: zoo zoo-full
zoo: all $(FAULT) ## throw every known cheat and every odd honest kernel at the judge: ZOO_ONLY=part of a name
	$(Q)BUILD=$(B) tests/zoo/zoo $(ZOO_ONLY)

zoo-full: all $(FAULT) ## the same in every disguise, and with each cheat's defences off; page reports/zoo-DEVICE.html
	$(Q)$(MAKE) ZOO=1 all $(FAULT:$(B)/%=.build-zoo/%)
	$(Q)BUILD=$(B) tests/zoo/zoo -f -o reports/zoo-$(or $(DEVICE),emu) $(ZOO_ONLY)
