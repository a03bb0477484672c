/*
 * test_spec.c - what spec.json may say, sizes, and the draw of held-out workloads.
 *
 * Writes only below a directory of its own in TMPDIR; reads tests/plans/.
 *
 * SPDX-License-Identifier: MIT
 */
#include "../../stages/lib/file.h"
#include "../../stages/lib/spec.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The parts of a spec; ' stands for ". Each can be replaced by a test. */
enum part { AXES, RULES, INPUTS, OUTPUTS, COMPUTE, REFERENCE, WORKLOADS, MORE, PARTS };
static const char *const USUAL[PARTS] = {
	"'axes':{'N':{'type':'var'},'M':{'type':'var'},'H':{'type':'const','value':64}},",
	"'constraints':['N % 4 == 0'],",
	"'inputs':{'x':{'shape':['N','H'],'dtype':'bfloat16'},'s':{'shape':null,'dtype':'float32'}},",
	"'outputs':{'y':{'shape':['N'],'dtype':'float32'},'i':{'shape':['N'],'dtype':'int32'}},",
	"'compute':{'operand':'bfloat16','accumulator':'float32'},",
	"'reference':{'source':'reference.cu','plan':'reference.json'},",
	"'workloads':{'public':[{'axes':{'N':64,'M':3},'emu':{'N':8}}],'tiny':[{'N':4,'M':1}]}",
	"",
};

static char *text_of(enum part which, const char *with)
{
	struct buf b = BUF_INIT;
	buf_adds(&b, "{'schema':'touchstone/spec/1','name':'t','op_type':'test',");
	for (int i = 0; i < PARTS; i++)
		buf_adds(&b, i == (int)which ? with : USUAL[i]);
	buf_adds(&b, "}");
	for (char *c = b.data; *c; c++)
		if (*c == '\'')
			*c = '"';
	return b.data;
}

static struct spec *parse(enum part which, const char *with, struct err *e)
{
	struct spec *s = NULL;
	char *text = text_of(which, with);
	e->text[0] = '\0';
	if (spec_parse(text, strlen(text), "spec.json", &s, e))
		s = NULL;
	free(text);
	return s;
}

static struct spec *good(enum part which, const char *with)
{
	struct err e;
	struct spec *s = parse(which, with, &e);
	if (!s)
		fail_msg("%s", e.text);
	return s;
}

static void test_usual(void **state)
{
	(void)state;
	struct err e;
	int64_t n, dims[SPEC_MAX_RANK];
	struct spec *s = good(PARTS, "");
	assert_int_equal(s->naxes, 3);
	assert_int_equal(s->ninputs, 2);
	assert_true(s->input[1].scalar);
	assert_int_equal(s->input[0].fill.kind, FILL_NORMAL);
	assert_int_equal(s->output[0].compare.kind, COMPARE_TOLERANCE);
	assert_true(isnan(s->output[0].compare.rtol));
	assert_int_equal(s->output[1].compare.kind, COMPARE_EXACT);
	assert_int_equal(s->intermediate, DT_F32);
	assert_true(s->margin == 0.02 && s->guard == -0.03);
	assert_string_equal(s->public[0].name, "w0");
	assert_int_equal(s->public[0].gpu.v[0], 64);
	assert_int_equal(s->public[0].emu.v[0], 8);
	assert_int_equal(s->public[0].emu.v[1], 3);
	assert_int_equal(s->public[0].emu.v[2], 64);
	assert_int_equal(spec_shape(s, &s->input[0], &s->public[0].gpu, dims, &n, &e), 0);
	assert_int_equal(n, 4096);
	assert_int_equal(dims[1], 64);
	assert_int_equal(spec_bytes(s, &s->input[0], &s->public[0].gpu, &n, &e), 0);
	assert_int_equal(n, 8192);
	assert_int_equal(spec_bytes(s, &s->input[1], &s->public[0].gpu, &n, &e), 0);
	assert_int_equal(n, 4);
	assert_int_equal(spec_reference_bytes(s, &s->output[0], &s->public[0].gpu, &n, &e), 0);
	assert_int_equal(n, 512);
	assert_int_equal(spec_reference_bytes(s, &s->output[1], &s->public[0].gpu, &n, &e), 0);
	assert_int_equal(n, 256);
	spec_free(s);
}

static void test_errors(void **state)
{
	(void)state;
	static const struct {
		enum part part;
		const char *with, *why;
	} bad[] = {
		{MORE, ",'surprise':1", "(top): unknown key 'surprise'"},
		{AXES, "", "(top): key 'axes' is missing"},
		{AXES, "'axes':{'N':{'type':'int'}},", "axes.N.type: 'int' is not one of: const, var"},
		{AXES, "'axes':{'N':{'type':'const'}},", "axes.N: a const axis has a value, a var axis has none"},
		{AXES, "'axes':{'N':{'type':'var','value':3}},", "axes.N: a const axis has a value, a var axis has none"},
		{AXES, "'axes':{'N':{'type':'const','value':0}},", "axes.N.value: 0 is outside 1..1099511627776"},
		{AXES, "'axes':{'min':{'type':'var'}},", "axes.min: the name 'min' is taken"},
		{AXES, "'axes':{'a-b':{'type':'var'}},",
		 "axes.a-b: 'a-b' is not a name ([A-Za-z_][A-Za-z0-9_]*, at most 31 characters)"},
		{RULES, "'constraints':['Q > 1'],", "constraints[0]: unknown axis 'Q'"},
		{RULES, "'constraints':['N >'],", "constraints[0]: column 4: the expression ends too early"},
		{RULES, "'constraints':['N == 9'],", "workloads.public[0].axes: constraints[0]: does not hold: N == 9"},
		{RULES, "'constraints':['occupancy(k)'],", "constraints[0]: occupancy() may not be used in a spec"},
		{INPUTS, "'inputs':{'x':{'shape':['Q'],'dtype':'float32'}},", "inputs.x.shape[0]: unknown axis 'Q'"},
		{INPUTS, "'inputs':{'x':{'shape':[],'dtype':'float32'}},", "inputs.x.shape: at least 1 entry"},
		{INPUTS, "'inputs':{'x':{'dtype':'float32'}},", "inputs.x: key 'shape' is missing"},
		{INPUTS, "'inputs':{'x':{'shape':['N'],'dtype':'f32'}},", "inputs.x.dtype: unknown dtype 'f32'"},
		{INPUTS, "'inputs':{'x':{'shape':['N'],'dtype':'float4_e2m1'}},",
		 "inputs.x.dtype: dtype 'float4_e2m1' is not supported here"},
		{INPUTS, "'inputs':{'N':{'shape':['N'],'dtype':'float32'}},", "inputs.N: the name 'N' is used twice"},
		{INPUTS, "'inputs':{'y':{'shape':['N'],'dtype':'float32'}},", "outputs.y: the name 'y' is used twice"},
		{INPUTS, "'inputs':{'x':{'shape':['N - 64'],'dtype':'float32'}},",
		 "workloads.public[0].axes: inputs.x.shape[0]: is 0, less than 1"},
		{INPUTS, "'inputs':{'x':{'shape':['N','N*1000000','N*1000000'],'dtype':'float32'}},",
		 "workloads.public[0].axes: 'x' has 262144000000000000 elements: more than limits.buffer_bytes 17179869184"},
		{INPUTS, "'inputs':{'x':{'shape':['1000000000*N','1000000000*N'],'dtype':'float32'}},",
		 "workloads.public[0].axes: inputs.x.shape[1]: too many elements"},
		{INPUTS, "'inputs':{'x':{'shape':['N'],'dtype':'float32','fill':{'kind':'random'}}},",
		 "inputs.x.fill.kind: 'random' is not one of: normal, uniform, wide_integer, spikes, index, permutation, "
		 "page_table, skewed_routing, indptr, constant, zeros"},
		{INPUTS, "'inputs':{'x':{'shape':['N'],'dtype':'float32','fill':{'kind':'normal','low':1}}},",
		 "inputs.x.fill: unknown key 'low'"},
		{INPUTS, "'inputs':{'x':{'shape':['N'],'dtype':'float32','fill':{'kind':'normal','std':-1}}},",
		 "inputs.x.fill: std is negative"},
		{INPUTS, "'inputs':{'x':{'shape':['N'],'dtype':'float32','fill':{'kind':'uniform','low':1}}},",
		 "inputs.x.fill: low is not below high"},
		{INPUTS, "'inputs':{'x':{'shape':['N'],'dtype':'float32','fill':{'kind':'index','high':'N'}}},",
		 "inputs.x.fill: fill 'index' needs an integer dtype"},
		{INPUTS, "'inputs':{'x':{'shape':['N'],'dtype':'int32','fill':{'kind':'normal'}}},",
		 "inputs.x.fill: fill 'normal' needs a float dtype"},
		{INPUTS, "'inputs':{'x':{'shape':['N'],'dtype':'int32','fill':{'kind':'index'}}},",
		 "inputs.x.fill: key 'high' is missing"},
		{INPUTS, "'inputs':{'x':{'shape':['N'],'dtype':'int8','fill':{'kind':'index','high':1000}}},",
		 "workloads.public[0].axes: inputs.x.fill: the largest value does not fit the dtype"},
		{INPUTS, "'inputs':{'x':{'shape':['N'],'dtype':'int32','fill':{'kind':'page_table','pages':'N - 1'}}},",
		 "workloads.public[0].axes: inputs.x.fill: fewer pages than entries of the page table"},
		{INPUTS, "'inputs':{'x':{'shape':['N',8],'dtype':'int32','fill':{'kind':'skewed_routing','experts':7}}},",
		 "workloads.public[0].axes: inputs.x.fill: fewer experts than choices per row"},
		{INPUTS, "'inputs':{'x':{'shape':['N + 1'],'dtype':'int32','fill':{'kind':'indptr','total':'M','min_step':1}}},",
		 "workloads.public[0].axes: inputs.x.fill: total is less than min_step per step"},
		{OUTPUTS, "'outputs':{},", "outputs: at least one output"},
		{OUTPUTS, "'outputs':{'y':{'shape':null,'dtype':'float32'}},", "outputs.y: an output has a shape"},
		{OUTPUTS, "'outputs':{'y':{'shape':['N'],'dtype':'int32','compare':{'kind':'tolerance'}}},",
		 "outputs.y.compare: compare 'tolerance' needs a float dtype"},
		{OUTPUTS, "'outputs':{'y':{'shape':['N'],'dtype':'int32','compare':{'kind':'ties'}}},",
		 "outputs.y.compare: key 'source' is missing"},
		{OUTPUTS, "'outputs':{'y':{'shape':['N'],'dtype':'int32','compare':{'kind':'sort','source':'q'}}},",
		 "outputs.y.compare.source: no input is named 'q'"},
		{OUTPUTS, "'outputs':{'y':{'shape':['N'],'dtype':'float32','compare':{'kind':'tolerance','rtol':-1}}},",
		 "outputs.y.compare: rtol is negative"},
		{COMPUTE, "", "(top): key 'compute' is missing"},
		{COMPUTE, "'compute':{'operand':'tf','accumulator':'float32'},", "compute.operand: unknown dtype 'tf'"},
		{REFERENCE, "'reference':{'source':'reference.cu'},", "reference: either source and plan, or command"},
		{REFERENCE, "'reference':{'source':'../r.cu','plan':'p.json'},",
		 "reference.source: '../r.cu' is not a plain file name"},
		{REFERENCE, "'reference':{'command':[]},", "reference.command: at least 1 entry"},
		{WORKLOADS, "'workloads':{'public':[],'tiny':[{'N':4,'M':1}]}", "workloads.public: at least 1 entry"},
		{WORKLOADS, "'workloads':{'public':[{'axes':{'N':4,'M':1}}]}", "workloads: key 'tiny' is missing"},
		{WORKLOADS, "'workloads':{'public':[{'axes':{'N':4}}],'tiny':[{'N':4,'M':1}]}",
		 "workloads.public[0].axes: axis 'M' is missing"},
		{WORKLOADS, "'workloads':{'public':[{'axes':{'N':4,'M':1,'H':3}}],'tiny':[{'N':4,'M':1}]}",
		 "workloads.public[0].axes: axis 'H' is const"},
		{WORKLOADS, "'workloads':{'public':[{'axes':{'N':5,'M':1}}],'tiny':[{'N':4,'M':1}]}",
		 "workloads.public[0].axes: constraints[0]: does not hold: N % 4 == 0"},
		{WORKLOADS, "'workloads':{'public':[{'axes':{'N':4,'M':1},'emu':{'N':2}}],'tiny':[{'N':4,'M':1}]}",
		 "workloads.public[0].emu: constraints[0]: does not hold: N % 4 == 0"},
		{WORKLOADS, "'workloads':{'public':[{'axes':{'N':4,'M':1},'weight':0}],'tiny':[{'N':4,'M':1}]}",
		 "workloads.public[0]: weight is outside 0..1e6"},
		{WORKLOADS, "'workloads':{'public':[{'axes':{'N':4,'M':1},'name':'A'}],'tiny':[{'N':4,'M':1}]}",
		 "workloads.public[0]: a workload name consists of a-z 0-9 _ -"},
		{WORKLOADS, "'workloads':{'public':[{'axes':{'N':4,'M':1}}],'tiny':[{'N':4,'M':1}],'held_out':{'axes':{'N':4}}}",
		 "workloads.held_out: axis 'M' is missing"},
		{WORKLOADS, "'workloads':{'public':[{'axes':{'N':4,'M':1}}],'tiny':[{'N':4,'M':1}],'held_out':{'axes':{'M':1,"
			    "'N':{'min':5,'max':7}}}}", "workloads.held_out: no draw satisfies the constraints"},
		{WORKLOADS, "'workloads':{'public':[{'axes':{'N':4,'M':1}}],'tiny':[{'N':4,'M':1}],'held_out':{'axes':{'M':1,"
			    "'N':{'min':5,'max':7,'multiple_of':4}}}}", "workloads.held_out.axes.N: no value lies between min and max"},
		{WORKLOADS, "'workloads':{'public':[{'axes':{'N':4,'M':1}}],'tiny':[{'N':4,'M':1}],'held_out':{'axes':{'M':1,"
			    "'N':{'min':5,'values':[8]}}}}", "workloads.held_out.axes.N: either min and max, or values, or equals"},
		{MORE, ",'promotion':{'margin':2}", "promotion: margin is outside 0..1"},
		{MORE, ",'cost':{'bytes':'Q'}", "cost.bytes: unknown axis 'Q'"},
		{MORE, ",'headers':['a/b']", "headers[0]: 'a/b' is not a plain file name"},
		{MORE, ",'limits':{'compile_s':0}", "limits.compile_s: 0 is outside 1..3600"},
	};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		struct err e;
		char want[400];
		struct spec *s = parse(bad[i].part, bad[i].with, &e);
		snprintf(want, sizeof want, "spec.json: %s", bad[i].why);
		if (s || strcmp(e.text, want))
			fail_msg("case %zu: got  '%s'\n             want '%s'", i, e.text, want);
		assert_int_equal(e.code, EX_BADINPUT);
	}
}

static void test_fills_and_compares(void **state)
{
	(void)state;
	struct err e;
	int64_t from, to;
	struct spec *s = good(INPUTS,
			      "'inputs':{'a':{'shape':['N'],'dtype':'float16','fill':{'kind':'spikes','rate':0.5}},"
			      "'b':{'shape':['N','H'],'dtype':'int32','fill':{'kind':'index','low':-3,'high':'H'}},"
			      "'c':{'shape':['N'],'dtype':'int64','fill':{'kind':'permutation'}},"
			      "'d':{'shape':['N + 1'],'dtype':'int32','fill':{'kind':'indptr','total':'N*H'}},"
			      "'e':{'shape':['N',4],'dtype':'int32','fill':{'kind':'skewed_routing','experts':'H','skew':2}},"
			      "'f':{'shape':['N'],'dtype':'int8','fill':{'kind':'wide_integer'}},"
			      "'g':{'shape':['N'],'dtype':'float8_e4m3fn','fill':{'kind':'zeros'}}},");
	const struct axes *a = &s->public[0].gpu;
	assert_true(s->input[0].fill.scale == 64 && s->input[0].fill.rate == 0.5);
	assert_int_equal(spec_fill_range(s, &s->input[1], a, &from, &to, &e), 0);
	assert_true(from == -3 && to == 64);
	assert_int_equal(spec_fill_range(s, &s->input[2], a, &from, &to, &e), 0);
	assert_true(from == 0 && to == 64);
	assert_int_equal(spec_fill_range(s, &s->input[3], a, &from, &to, &e), 0);
	assert_true(from == 0 && to == 4096);
	assert_true(s->input[5].fill.low == -128 && s->input[5].fill.high == 128);
	spec_free(s);
	s = good(OUTPUTS, "'outputs':{'v':{'shape':['N'],'dtype':'float32','compare':{'kind':'tolerance','atol_rms':0.5}},"
			  "'i':{'shape':['N'],'dtype':'int64','compare':{'kind':'topk','source':'x','values':'v',"
			  "'sorted':true}},'j':{'shape':['N'],'dtype':'int32','compare':{'kind':'distribution','source':'x',"
			  "'alpha':0.01}},'k':{'shape':['N'],'dtype':'int32','compare':{'kind':'sort','source':'x',"
			  "'stable':true,'descending':true}}},");
	assert_true(s->output[0].compare.atol_rms == 0.5);
	assert_int_equal(s->output[1].compare.source, 0);
	assert_int_equal(s->output[1].compare.values, 0);
	assert_true(s->output[1].compare.sorted);
	assert_true(s->output[2].compare.alpha == 0.01);
	assert_true(s->output[3].compare.stable && s->output[3].compare.descending);
	spec_free(s);
	s = good(COMPUTE, "'compute':{'operand':'tfloat32','accumulator':'float32','intermediate':'bfloat16'},");
	assert_true(s->tf32 && s->operand == DT_F32 && s->intermediate == DT_BF16);
	spec_free(s);
	s = good(REFERENCE, "'reference':{'command':['reference.py','--device','cpu']},");
	assert_int_equal(s->reference_argc, 3);
	assert_null(s->reference_argv[3]);
	spec_free(s);
}

static uint64_t next_word(void *ctx)
{
	uint64_t *x = ctx;
	*x = *x * 6364136223846793005u + 1442695040888963407u;
	return *x ^ *x >> 29;
}

/* Least, greatest, moved inwards to where the constraints hold. */
static void test_edges(void)
{
	static const int64_t want[6][2] = {{8, 1}, {40, 9}, {40, 1}, {8, 9}, {8, 9}, {40, 1}};
	struct axes a;
	struct spec *s = good(WORKLOADS,
			      "'workloads':{'public':[{'axes':{'N':4,'M':1}}],'tiny':[{'N':4,'M':1}],'held_out':{'count':3,"
			      "'axes':{'N':{'min':5,'max':42},'M':{'values':[3,9,1]}},'emu':{'M':{'equals':'N/4 + H'}}}}");
	for (int k = 0; k < 6; k++) {
		assert_int_equal(spec_edge(s, 0, k, &a), 1);
		assert_int_equal(a.v[0], want[k][0]);
		assert_int_equal(a.v[1], want[k][1]);
	}
	assert_int_equal(spec_edge(s, 0, 6, &a), -1);
	assert_int_equal(spec_edge(s, 1, 0, &a), 1);
	assert_int_equal(a.v[1], 8 / 4 + 64);
	assert_int_equal(spec_edge(s, 1, 1, &a), 1);
	assert_int_equal(a.v[0], 40);
	assert_int_equal(spec_edge(s, 1, 2, &a), -1); /* one axis only: nothing else to move */
	spec_free(s);
}

static void test_draw(void **state)
{
	(void)state;
	struct err e;
	struct axes a, b;
	uint64_t seed = 7, again = 7;
	int seen_low = 0, seen_high = 0;
	struct spec *s = good(WORKLOADS,
			      "'workloads':{'public':[{'axes':{'N':4,'M':1}}],'tiny':[{'N':4,'M':1}],'held_out':{'count':3,"
			      "'axes':{'N':{'min':3,'max':41,'multiple_of':2},'M':{'equals':'N/4 + H'}},"
			      "'emu':{'N':{'values':[4,5,8]}}}}");
	assert_int_equal(s->held_out_count, 3);
	for (int i = 0; i < 2000; i++) {
		assert_int_equal(spec_draw(s, 0, 0, next_word, &seed, &a, &e), 0);
		assert_int_equal(spec_draw(s, 0, 0, next_word, &again, &b, &e), 0);
		assert_memory_equal(&a.v, &b.v, 3 * sizeof a.v[0]);
		assert_int_equal(a.v[0] % 4, 0);
		assert_in_range(a.v[0], 4, 40);
		assert_int_equal(a.v[1], a.v[0] / 4 + 64);
		assert_int_equal(a.v[2], 64);
		seen_low |= a.v[0] == 4;
		seen_high |= a.v[0] == 40;
		assert_int_equal(spec_draw(s, 1, 0, next_word, &seed, &a, &e), 0);
		assert_true(a.v[0] == 4 || a.v[0] == 8);
		assert_int_equal(spec_draw(s, 0, 1, next_word, &seed, &a, &e), 0);
		assert_int_equal(a.v[0] % 4, 0);
		assert_in_range(a.v[0], 4, 40);
		again = seed;
	}
	assert_true(seen_low && seen_high);
	spec_free(s);
	test_edges();
	s = good(PARTS, "");
	assert_int_equal(spec_edge(s, 0, 0, &a), -1);
	assert_int_equal(spec_draw(s, 0, 0, next_word, &seed, &a, &e), -1);
	assert_string_equal(e.text, "spec.json: workloads.held_out: there is none");
	spec_free(s);
}

static int get_axis(void *ctx, const char *name, int64_t *v)
{
	*v = *(int64_t *)ctx;
	return strcmp(name, "M") == 0 && *v == 13 ? -1 : 0;
}

static void test_bind(void **state)
{
	(void)state;
	struct err e;
	struct axes a;
	int64_t v = 12;
	struct spec *s = good(PARTS, "");
	assert_int_equal(spec_axes_bind(s, get_axis, &v, &a, &e), 0);
	assert_true(a.v[0] == 12 && a.v[1] == 12 && a.v[2] == 64);
	v = 13;
	assert_int_equal(spec_axes_bind(s, get_axis, &v, &a, &e), -1);
	assert_string_equal(e.text, "spec.json: no value for axis 'M'");
	v = 0;
	assert_int_equal(spec_axes_bind(s, get_axis, &v, &a, &e), -1);
	assert_string_equal(e.text, "spec.json: axis 'N' is 0, less than 1");
	v = (int64_t)1 << 60;
	assert_int_equal(spec_axes_bind(s, get_axis, &v, &a, &e), -1);
	spec_free(s);
}

static void test_examples(void **state)
{
	(void)state;
	struct err e;
	struct spec *s;
	int64_t bytes, flops;
	assert_int_equal(spec_load("tests/plans/flash_attention_2", &s, &e), 0);
	assert_int_equal(spec_cost(s, &s->public[0].gpu, &bytes, &flops, &e), 0);
	assert_int_equal(bytes, 2LL * 2 * 4096 * 128 * 40 + 4 * 2 * 16 * 4096);
	assert_int_equal(flops, 4LL * 2 * 16 * 4096 * 4096 * 128);
	spec_free(s);
	assert_int_equal(spec_load("tests/plans/none", &s, &e), -1);
}

static void test_files(void **state)
{
	(void)state;
	struct err e;
	struct spec_files f;
	char dir[128], path[200], sha[HASH_HEX], other[HASH_HEX];
	const char *tmp = getenv("TMPDIR");
	snprintf(dir, sizeof dir, "%s/test_spec.XXXXXX", tmp ? tmp : "/tmp");
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof path, "%s/baseline", dir);
	assert_int_equal(dir_make(path, &e), 0);
	static const char *const names[] = {"spec.json", "baseline/kernel.cu", "README.md", ".hidden", "x~"};
	for (int i = 0; i < 5; i++) {
		snprintf(path, sizeof path, "%s/%s", dir, names[i]);
		assert_int_equal(file_write(path, "a", 1, 0644, &e), 0);
	}
	assert_int_equal(spec_files_list(dir, &f, &e), 0);
	assert_int_equal(f.n, 3);
	assert_string_equal(f.file[0].name, "README.md");
	assert_string_equal(f.file[1].name, "baseline/kernel.cu");
	assert_string_equal(f.file[2].name, "spec.json");
	spec_files_sha(&f, sha);
	spec_files_free(&f);
	snprintf(path, sizeof path, "%s/.hidden", dir);
	assert_int_equal(file_write(path, "b", 1, 0644, &e), 0);
	assert_int_equal(spec_sha256(dir, other, &e), 0);
	assert_string_equal(sha, other);
	snprintf(path, sizeof path, "%s/baseline/kernel.cu", dir);
	assert_int_equal(file_write(path, "b", 1, 0644, &e), 0);
	assert_int_equal(spec_sha256(dir, other, &e), 0);
	assert_string_not_equal(sha, other);
	snprintf(path, sizeof path, "%s/link", dir);
	assert_int_equal(symlink("spec.json", path), 0);
	assert_int_equal(spec_sha256(dir, other, &e), -1);
	dir_remove(dir, &e);
}

/* How often do a dozen probes of specs/matmul come upon a bug that shows only at such sizes? */
static void test_probes(void **state)
{
	(void)state;
	enum { SETS = 2000, PROBES = 12, BUGS = 6 };
	static const char *const NAME[BUGS] = {"K % 16 == 1", "K % 32 == 31", "M % 16 == 1",
					       "K is 2^k + 1", "K == min", "M and N above a multiple of 8"};
	int met[BUGS] = {0};
	uint64_t seed = 11;
	struct spec *s;
	struct axes a;
	struct err e;
	assert_int_equal(spec_load("specs/matmul", &s, &e), 0);
	int m = spec_axis_find(s, "M"), n = spec_axis_find(s, "N"), k = spec_axis_find(s, "K");
	for (int i = 0; i < SETS; i++) {
		int hit[BUGS] = {0};
		for (int j = 0; j < PROBES; j++) {
			assert_int_equal(spec_draw(s, 1, 1, next_word, &seed, &a, &e), 0);
			int64_t M = a.v[m], N = a.v[n], K = a.v[k];
			assert_true(M >= 1 && M <= 72 && N >= 1 && N <= 72 && K >= 1 && K <= 96);
			hit[0] |= K % 16 == 1;
			hit[1] |= K % 32 == 31;
			hit[2] |= M % 16 == 1;
			hit[3] |= K > 2 && ((K - 1) & (K - 2)) == 0;
			hit[4] |= K == 1;
			hit[5] |= M % 8 == 1 && N % 8 == 1;
		}
		for (int b = 0; b < BUGS; b++)
			met[b] += hit[b];
	}
	for (int b = 0; b < BUGS; b++)
		print_message("    %-32s %.1f %%\n", NAME[b], 100.0 * met[b] / SETS);
	assert_true(met[0] > SETS * 95 / 100 && met[2] > SETS * 95 / 100 && met[5] > SETS * 8 / 10);
	assert_true(met[1] > SETS * 7 / 10 && met[3] > SETS * 8 / 10);
	spec_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_usual), cmocka_unit_test(test_errors),
		cmocka_unit_test(test_fills_and_compares), cmocka_unit_test(test_draw),
		cmocka_unit_test(test_probes),
		cmocka_unit_test(test_bind), cmocka_unit_test(test_examples), cmocka_unit_test(test_files),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
