/*
 * reason.c - see reason.h. Keep the table sorted by code: it is searched by halves.
 *
 * SPDX-License-Identifier: MIT
 */
#include "reason.h"

#include <stdlib.h>
#include <string.h>

static const struct reason table[] = {
	{"bench.below_margin", "faster than the champion by less than the margin"},
	{"bench.bimodal", "timings fall into two groups"},
	{"bench.champion_solo", "the champion alone and the champion in session disagree"},
	{"bench.engine_floor", "the engine was timed below what the GPU can do: a fault of the measurement"},
	{"bench.fault", "a bad address, a failed launch or a trap while timed"},
	{"bench.inconclusive", "the evidence decides neither way within the budget"},
	{"bench.invalid_env", "the machine was not quiet or not the same throughout"},
	{"bench.late_work", "work went on after the launches were over"},
	{"bench.memory", "the engine needs more memory than its gate allows"},
	{"bench.protocol", "the confined process answered nonsense or died silently"},
	{"bench.rival", "the champion or the baseline failed while timed"},
	{"bench.roofline", "faster than the device's limits allow"},
	{"bench.slower", "slower than the champion"},
	{"bench.spread", "timings of one arm spread too far"},
	{"bench.timeout", "a timed launch list did not finish in time"},
	{"bench.tpot", "time per token beyond the gate"},
	{"bench.ttft", "time to the first token beyond the gate"},
	{"bench.workload", "slower than the guard at one workload"},
	{"bench.wrong_output", "a timed launch gave a wrong output"},
	{"compile.crash", "the compiler crashed"},
	{"compile.error", "the compiler rejects the source"},
	{"compile.limit", "the compiler ran into its memory, process or file limit"},
	{"compile.timeout", "the compiler did not finish in time"},
	{"confirm.below_margin", "below the margin in new processes"},
	{"confirm.bimodal", "timings fall into two groups"},
	{"confirm.champion_changed",
	 "the champion changed since bench and the candidate does not beat the new one"},
	{"confirm.champion_solo", "the champion alone and the champion in session disagree"},
	{"confirm.drain", "work is left over when the queue is drained"},
	{"confirm.engine_floor", "the engine was timed below what the GPU can do: a fault of the measurement"},
	{"confirm.fault", "a bad address, a failed launch or a trap while timed"},
	{"confirm.held_out", "slower than the guard at a shape that is not public"},
	{"confirm.inconclusive", "new processes decide neither way within the budget"},
	{"confirm.invalid_env", "the machine was not quiet or not the same throughout"},
	{"confirm.late_work", "work went on after the launches were over"},
	{"confirm.memory", "the engine needs more memory than its gate allows"},
	{"confirm.protocol", "the confined process answered nonsense or died silently"},
	{"confirm.rival", "the champion or the baseline failed while timed"},
	{"confirm.roofline", "faster than the device's limits allow"},
	{"confirm.slower", "slower than the champion in new processes"},
	{"confirm.spread", "timings of one arm spread too far"},
	{"confirm.sustained", "slower than the champion when run for long"},
	{"confirm.timeout", "a timed launch list did not finish in time"},
	{"confirm.tpot", "time per token beyond the gate"},
	{"confirm.ttft", "time to the first token beyond the gate"},
	{"confirm.workload", "slower than the guard at one workload"},
	{"confirm.wrong_output", "a timed launch gave a wrong output in new processes"},
	{"guard.ascii", "a byte that is not printable ASCII, blank, tab or newline"},
	{"guard.asm", "inline assembly cannot run on this device"},
	{"guard.attribute", "an attribute that is not allowed"},
	{"guard.constant", "the module has more constant data than allowed"},
	{"guard.credential", "something that looks like a credential is in the source"},
	{"guard.directive", "a preprocessor directive that is not allowed"},
	{"guard.duplicate", "this very candidate was tried before"},
	{"guard.entry_extra", "the module exports more than the entries of the plan"},
	{"guard.entry_missing", "an entry of the plan is not in the module"},
	{"guard.entry_signature", "the parameters of an entry differ from the plan's arguments"},
	{"guard.hang", "this very candidate is known to hang"},
	{"guard.host_code", "host code: only device code is accepted"},
	{"guard.include", "a header that is not on the allowed list is included"},
	{"guard.init_code", "the module runs code before its kernels are launched"},
	{"guard.json", "plan.json is not strict JSON"},
	{"guard.lexical",
	 "text that compilers read differently: trigraph, stray backslash, unterminated literal"},
	{"guard.limits", "a launch exceeds a limit of the device or the spec"},
	{"guard.module_state", "the module has variables of its own that live across launches, or could write beside some"},
	{"guard.opcode", "the module uses an instruction that kernels may not use"},
	{"guard.plan", "plan.json breaks the plan grammar or does not fit the spec"},
	{"guard.reserved", "a name that belongs to CUDA, the compiler or Touchstone is defined"},
	{"guard.scope", "a file outside the fixed slots, or a slot is missing"},
	{"guard.size", "a file is empty or larger than its cap"},
	{"guard.undefined_symbol", "the module needs a symbol that kernels may not use"},
	{"judge.argmax_rate", "fewer of its ids are the model's very best than honest rounding would leave"},
	{"judge.barrier", "not all threads reach the same barrier"},
	{"judge.bias", "the errors of a row point one way: something inside is not precise enough"},
	{"judge.deadlock", "no thread can go on"},
	{"judge.distribution", "samples do not follow the distribution"},
	{"judge.element", "an element is out of bounds"},
	{"judge.engine_died", "the engine ended before it had answered, or not with exit code 0"},
	{"judge.engine_early", "the engine wrote before it had the whole request"},
	{"judge.engine_extra", "the engine wrote more than batch x steps ids"},
	{"judge.engine_garbage", "the first word of the engine is not that it is ready"},
	{"judge.engine_range", "the engine said an id outside the vocabulary"},
	{"judge.engine_timeout", "the engine did not answer in time"},
	{"judge.error_ratio", "far less exact than a native kernel of the same compute class"},
	{"judge.exact", "wrong in the regime where the exact result is known"},
	{"judge.fault", "a bad address, a failed launch or a trap"},
	{"judge.guard_read", "the output depends on bytes outside the buffers"},
	{"judge.guard_write", "a write outside the output and workspace buffers"},
	{"judge.held_out", "wrong at a shape that is not public"},
	{"judge.index", "an index is out of range or repeated"},
	{"judge.input_write", "an input was written"},
	{"judge.late_write", "an output changed after the launches were over"},
	{"judge.margin", "an id is not the model's: its logit is further from the best than honest rounding explains"},
	{"judge.mean_regret", "all ids together are less exact than honest rounding would leave them"},
	{"judge.nan", "not a number where the reference has one"},
	{"judge.nonfinite", "infinity or not a number where the reference is finite"},
	{"judge.order", "the output is not sorted, or not stably"},
	{"judge.p99_regret", "one id in a hundred is further from the best than honest rounding explains"},
	{"judge.protocol", "the confined process answered nonsense or died silently"},
	{"judge.refused", "the device cannot run this launch"},
	{"judge.rel_l2", "relative L2 error above the bound"},
	{"judge.row", "a row is out of bounds"},
	{"judge.ties", "an index whose value is not the reference's"},
	{"judge.timeout", "a launch list did not finish in time"},
	{"judge.unwritten", "part of an output was never written"},
	{"ok", "nothing wrong"},
	{"promote.chain", "a file of the evidence is missing or is not the one recorded"},
	{"promote.first", "promoted: the first champion"},
	{"promote.isolation", "too few isolation layers were active to trust the evidence"},
	{"promote.kept", "promoted: the new champion"},
	{"promote.mac", "a verdict does not carry the checker's signature"},
	{"promote.selftest",
	 "the judge's self-test is missing or was failed by the programs that judged"},
	{"promote.stale_champion", "confirmed against another champion than the present one"},
	{"propose.ambiguous", "the reply gives two answers for one file, or cannot be told apart"},
	{"propose.command", "the proposer command failed"},
	{"propose.empty", "the reply has no text"},
	{"propose.file_name", "the reply names a file that a candidate does not have"},
	{"propose.filtered", "the provider filtered the reply"},
	{"propose.header", "the reply's header is malformed"},
	{"propose.malformed", "the reply is not text or not a chat completion"},
	{"propose.missing_file", "the reply announces a file and does not give it"},
	{"propose.no_files", "the reply gives none of a candidate's files"},
	{"propose.no_replies_left", "no recorded reply is left to replay"},
	{"propose.plateau", "too many trials in a row were not kept: the search has ended"},
	{"propose.refused", "the model declined"},
	{"propose.space_done", "every legal configuration of the tunables has been tried"},
	{"propose.timeout", "no reply arrived in time"},
	{"propose.too_large", "the reply or a file in it is larger than allowed"},
	{"propose.tool_calls", "the model called a tool instead of answering"},
	{"propose.truncated", "the reply stops before its end"},
	{"propose.unchanged", "the candidate is the same as its parent"},
	{"run.child_died", "the confined process died twice at this step"},
	{"run.harness", "our own code failed twice at this step with the same inputs"},
	{"skip.not_repairable", "the last attempt failed in a way that is not given back for repair"},
	{"skip.passed", "the last attempt passed its tests: no repair needed"},
	{"skip.repair_budget", "the budget or the model's window has no room for a repair turn"},
	{"skip.repair_off", "no repair turn, or no further one, was asked for"},
	{"skip.upstream", "the trial was closed by an earlier step"},
	{"tune.adopted", "an adopted candidate is judged as it is"},
	{"tune.compile", "no configuration compiles"},
	{"tune.no_tunables", "the plan has no tunables"},
	{"tune.none_correct", "no configuration gives correct outputs"},
	{"tune.none_legal", "no configuration satisfies the plan's constraints"},
	{"tune.refused", "the judge refused every configuration that was put forward"},
	{"tune.sweep", "a sweep proposal is one configuration already"},
	{"unittest.argmax_rate", "fewer of its ids are the model's very best than honest rounding would leave"},
	{"unittest.barrier", "not all threads reach the same barrier"},
	{"unittest.deadlock", "no thread can go on"},
	{"unittest.engine_died", "the engine ended before it had answered, or not with exit code 0"},
	{"unittest.engine_early", "the engine wrote before it had the whole request"},
	{"unittest.engine_extra", "the engine wrote more than batch x steps ids"},
	{"unittest.engine_garbage", "the first word of the engine is not that it is ready"},
	{"unittest.engine_range", "the engine said an id outside the vocabulary"},
	{"unittest.engine_timeout", "the engine did not answer in time"},
	{"unittest.fault", "a bad address, a failed launch or a trap at a tiny shape"},
	{"unittest.guard_write", "a write outside the output and workspace buffers"},
	{"unittest.input_write", "an input was written"},
	{"unittest.margin", "an id is not the model's: its logit is further from the best than honest rounding explains"},
	{"unittest.mean_regret", "all ids together are less exact than honest rounding would leave them"},
	{"unittest.nondeterministic", "different outputs for the same inputs at a tiny shape"},
	{"unittest.not_emulable",
	 "uses what the emulation cannot run and there is no GPU to run it on"},
	{"unittest.p99_regret", "one id in a hundred is further from the best than honest rounding explains"},
	{"unittest.protocol", "the confined process answered nonsense or died silently"},
	{"unittest.race", "threads race on shared or global memory"},
	{"unittest.sanitizer", "the sanitizers report an error at a tiny shape"},
	{"unittest.timeout", "a tiny shape did not finish in time"},
	{"unittest.wrong", "wrong output at a tiny shape"},
};

/*
 * What a proposer may repair: a program or a plan that is wrong as such, told by a compiler or by a
 * test on public shapes. Not what breaks the rules of the game (files, alphabet, credentials, names,
 * headers, state that outlives a launch, instructions, duplicates): more turns there would help those
 * who look for a gap. Not an engine that answers before it was asked: that is no slip. Not a process of
 * ours that died without a word, and nothing of judge and later steps, whose inputs are secret. Not an unusable reply: there are no files to repair.
 */
static const char *const repairable[] = {
	"compile.crash", "compile.error", "compile.limit", "compile.timeout",
	"guard.asm", "guard.constant", "guard.entry_extra", "guard.entry_missing", "guard.entry_signature",
	"guard.json", "guard.limits", "guard.plan",
	"unittest.argmax_rate", "unittest.barrier", "unittest.deadlock", "unittest.engine_died", "unittest.engine_extra",
	"unittest.engine_garbage", "unittest.engine_range", "unittest.engine_timeout", "unittest.fault", "unittest.guard_write",
	"unittest.input_write", "unittest.margin", "unittest.mean_regret", "unittest.nondeterministic", "unittest.not_emulable",
	"unittest.p99_regret", "unittest.race", "unittest.sanitizer", "unittest.timeout", "unittest.wrong",
};

int reason_repairable(const char *code)
{
	for (size_t i = 0; i < sizeof repairable / sizeof *repairable; i++)
		if (strcmp(code, repairable[i]) == 0)
			return 1;
	return 0;
}

static int by_code(const void *key, const void *item)
{
	return strcmp(key, ((const struct reason *)item)->code);
}

const struct reason *reason_find(const char *code)
{
	return bsearch(code, table, sizeof table / sizeof table[0], sizeof table[0], by_code);
}

const char *reason_text(const char *code)
{
	const struct reason *r = reason_find(code);
	return r ? r->text : "unknown reason";
}

const struct reason *reason_list(size_t *count)
{
	*count = sizeof table / sizeof table[0];
	return table;
}

static int one_of(const char *code, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(code, list[i]))
			return 1;
	return 0;
}

int reason_search_over(const char *code)
{
	static const char *const list[] = {"propose.space_done", "propose.plateau", "propose.no_replies_left"};

	return one_of(code, list, sizeof list / sizeof *list);
}

int reason_unusable_reply(const char *code)
{
	static const char *const list[] = {
		"propose.ambiguous", "propose.empty",    "propose.file_name",  "propose.header",    "propose.malformed",
		"propose.missing_file", "propose.no_files", "propose.too_large", "propose.tool_calls", "propose.truncated",
	};

	return one_of(code, list, sizeof list / sizeof *list);
}
